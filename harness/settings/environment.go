package settings

import (
	"maps"
	"slices"
	"strings"
)

// environment is the process environment by name.
type environment map[string]string

func parseEnviron(environ []string) environment {
	env := environment{}
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok {
			env[name] = value
		}
	}
	return env
}

// settings are those that the environment sets.
func (env environment) settings() map[string]origin {
	found := map[string]origin{}
	for _, f := range fields {
		text, ok := env[f.env]
		if !ok {
			continue
		}
		texts := []string{text}
		if f.list {
			texts = splitList(f, text)
		}
		found[f.flag] = origin{source: FromEnvironment, where: string(FromEnvironment), texts: texts}
	}
	return found
}

// NoDocker is the variable with which this project's tests are told that there is no Docker. It is no setting.
const NoDocker = EnvPrefix + "NO_DOCKER"

// strangers are faults for the PLUMBLINE_ variables that are no settings. The variable that holds the key may be
// called as its owner likes, so that one is let through.
func (env environment) strangers(keyHolder string) []error {
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(env)) {
		known := slices.ContainsFunc(fields, func(f field) bool { return f.env == name })
		if strings.HasPrefix(name, EnvPrefix) && !known && name != keyHolder && name != NoDocker {
			faults = append(faults, unknown(name, env[name], string(FromEnvironment), names(asEnv)))
		}
	}
	return faults
}
