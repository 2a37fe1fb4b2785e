package strata

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"plumbline/fixtures"
)

// host is a fact about the engine's machine: known only when the engine runs on this one.
func host[T any](b *builder, field string, v T, read bool) Null[T] {
	h := &b.run.Header.Host
	switch {
	case !h.EngineHere:
		return None[T](whyEngineElsewhere)
	case !read:
		return None[T](cmp.Or(h.Reasons[field], whyUnread))
	}
	return Some(v)
}

// listed is a fact that is a list, made from what was read. An empty one is known to be empty unless nothing was read or
// a reason says that it could not be.
func listed[T, U any](b *builder, field string, list []T, read []U) Null[[]T] {
	return host(b, field, list, len(read) > 0 || read != nil && b.run.Header.Host.Reasons[field] == "")
}

func (b *builder) hardware() Hardware {
	h := &b.run.Header.Host
	gpus := make([]GPU, len(h.GPUs))
	for i, g := range h.GPUs {
		why := func(part, otherwise string) string {
			return cmp.Or(h.Reasons[fmt.Sprintf("gpus.%d.%s", i, part)], otherwise)
		}
		gpus[i] = GPU{
			DeviceIndex: g.DeviceIndex, Name: told(g.Name, why("name", whyNoPartName)),
			MemoryBytes: positive(g.MemoryBytes, why("memory_bytes", whyNoMemory)),
			MemoryKind:  told(g.MemoryKind, why("memory_kind", whyNoMemoryKind)),
			PowerLimitW: None[Number](why("power_limit_w", whyNoPowerLimit)),
		}
		if g.PowerLimitW != nil {
			gpus[i].PowerLimitW = b.number(*g.PowerLimitW, asMeasured)
		}
	}
	return Hardware{
		GPUs: listed(b, "gpus", gpus, h.GPUs),
		CPU:  host(b, "cpu", h.CPU, h.CPU != ""), RAMBytes: host(b, "ram_bytes", h.RAMBytes, h.RAMBytes > 0),
		Storage:             host(b, "storage", h.Storage, h.Storage != ""),
		BackgroundWorkloads: told(b.run.Header.Declared.Background, undeclared("--background")),
	}
}

func positive(n int64, reason string) Null[int64] {
	if n <= 0 {
		return None[int64](reason)
	}
	return Some(n)
}

func (b *builder) software() Software {
	h, e, declared := &b.run.Header.Host, &b.run.Header.Engine, &b.run.Header.Declared
	return Software{
		OS: host(b, "os_name", OS{
			Name: told(h.OSName, cmp.Or(h.Reasons["os_name"], whyUnread)), Version: told(h.OSVersion, cmp.Or(h.Reasons["os_version"], whyUnread)),
		}, h.OSName != "" || h.OSVersion != ""),
		Drivers:       listed(b, "drivers", versions(h.Drivers), h.Drivers),
		Runtime:       listed(b, "runtime", versions(h.Runtime), h.Runtime),
		StrataCommit:  strataCommit(e),
		EngineVersion: told(e.Version, whyEngineSilent),
		BuildKind:     told(e.BuildKind, whyEngineSilent),
		RunnerCommit:  told(b.run.Header.RunnerCommit, whyNoRunnerCommit),
		BuildOptions:  told(cmp.Or(declared.BuildOptions, e.BuildOptions), undeclared("--build-options")),
	}
}

func versions(list []fixtures.NameVersion) []NameVersion {
	out := make([]NameVersion, len(list))
	for i, v := range list {
		out[i] = NameVersion{v.Name, told(v.Version, whyNoPartVersion)}
	}
	return out
}

func strataCommit(e *fixtures.EngineFacts) Null[string] {
	switch {
	case e.Name == "":
		return None[string](whyEngineUnnamed)
	case !strings.EqualFold(e.Name, "strata"):
		return None[string](strings.Replace(whyNotStrata, "%s", e.Name, 1))
	}
	return told(e.Commit, whyEngineSilent)
}

func (b *builder) model() Model {
	declared := &b.run.Header.Declared
	return Model{
		ID:                told(b.run.Header.Model, whyNoModelNamed),
		Revision:          told(declared.ModelRevision, undeclared("--model-revision")),
		SourceRevision:    told(declared.SourceRevision, undeclared("--source-revision")),
		Quantization:      told(declared.Quantization, undeclared("--quantization")),
		Files:             b.modelFiles(),
		TokenizerRevision: told(declared.TokenizerRevision, undeclared("--tokenizer-revision")),
		CustomPack:        told(declared.CustomPack, undeclared("--custom-pack")),
	}
}

func (b *builder) modelFiles() Null[[]ModelFile] {
	h := &b.run.Header.Host
	if len(h.ModelFiles) == 0 {
		reason := b.unhashed()
		if reason != whyHashSkipped {
			reason = cmp.Or(h.Reasons["model_files"], reason)
		}
		return None[[]ModelFile](reason)
	}
	why := whyFileUnhashed
	if b.run.Header.Declared.SkipModelHash {
		why = whyHashSkipped
	}
	files := make([]ModelFile, len(h.ModelFiles))
	for i, f := range h.ModelFiles {
		files[i] = ModelFile{f.Path, f.Bytes, told(f.SHA256, why)}
	}
	return Some(files)
}

// unhashed says why there is no digest of every model file; "" when there is.
func (b *builder) unhashed() string {
	h := &b.run.Header
	unhashed := func(f fixtures.ModelFile) bool { return f.SHA256 == "" }
	switch {
	case len(h.Host.ModelFiles) > 0 && !slices.ContainsFunc(h.Host.ModelFiles, unhashed):
		return ""
	case h.Declared.SkipModelHash:
		return whyHashSkipped
	case h.Engine.ModelPath != "":
		return whyFileNotHere
	case len(h.Host.ModelFiles) > 0 || h.Host.NamedFileUnread: // with a server that names none, it was the operator who did
		return whyNamedUnread
	}
	return whyPathUntold
}

// engineOptions says which option of which engine fills which field of the configuration. The others are listed in the
// extensions.
var engineOptions = map[string]string{
	"kv": "kv_cache", "kv_cache": "kv_cache", "expert_slots": "expert_cache", "expert_cache": "expert_cache",
	"offload": "offloading", "offloading": "offloading", "prefill": "prefill", "mtp": "mtp",
	"calibration": "calibration", "experimental": "experimental_options", "experimental_options": "experimental_options",
}

// option is the engine's own value for a field of the configuration.
func (b *builder) option(field string) Null[string] {
	options := b.run.Header.Engine.Options
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if engineOptions[name] == field && options[name] != "" {
			return told(options[name], whyOptionUnseen)
		}
	}
	return None[string](whyOptionUnseen)
}

// otherOptions are the engine's options that no field of the configuration is for, by name.
func (b *builder) otherOptions() Ordered[string] {
	options := b.run.Header.Engine.Options
	others := Ordered[string]{}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if engineOptions[name] == "" {
			others = append(others, Member[string]{name, options[name]})
		}
	}
	return others
}

// templatePath is where the chat template is kept among the artifacts (ref).
const templatePath = "provenance/chat_template.jinja"

func (b *builder) configuration() Configuration {
	h := &b.run.Header
	c := Configuration{
		Track:          told(h.Declared.Track, undeclared("--track")),
		TrackNotes:     told(h.Declared.TrackNotes, undeclared("--track-notes")),
		ContextTokens:  pointed(h.Engine.ContextTokens, whyEngineSilent),
		ServerCapacity: pointed(cmp.Or(h.ServerCapacity, h.Engine.Capacity), whyNoCapacity),
		KVCache:        b.option("kv_cache"), ExpertCache: b.option("expert_cache"), Offloading: b.option("offloading"),
		Prefill: b.option("prefill"), MTP: b.option("mtp"), Calibration: b.option("calibration"),
		ExperimentalOptions: b.option("experimental_options"),
		Template:            None[Template](whyNoTemplate),
		Sampling:            object(h.Profile.Sampling), ChatTemplateKwargs: object(h.Profile.ChatTemplateKwargs),
	}
	for _, a := range h.Artifacts {
		if a.Path == templatePath {
			c.Template = Some(Template{a.Path, a.SHA256})
		}
	}
	return c
}

// object is a raw object as it was sent; one that was not sent is empty.
func object(raw json.RawMessage) json.RawMessage {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}")
	}
	return raw
}
