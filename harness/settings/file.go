package settings

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds the settings file; a real one has a few hundred bytes.
const maxFile = 1 << 20

func resolvePath(path, baseDir string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(baseDir, path)
}

// readFile reads the settings of a YAML file: one mapping from a setting's flag name to a scalar, or to a list of
// scalars where the setting is a list. shownAs is the path as the operator wrote it.
func readFile(path, shownAs string) (map[string]origin, []error) {
	file := fmt.Sprintf("file %q", shownAs)
	fail := func(problem string) (map[string]origin, []error) {
		return nil, []error{&Fault{Name: "config", Where: file, Problem: problem}}
	}
	data, err := readBounded(path)
	if err != nil {
		return fail(err.Error())
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return fail("not YAML: " + err.Error())
	}
	if doc.Kind == 0 {
		return nil, nil // an empty file, or nothing but comments
	}
	if root := doc.Content[0]; root.Kind != yaml.MappingNode {
		return fail("want one mapping of settings, such as \"url: http://127.0.0.1:8080\"")
	}
	return readMapping(doc.Content[0], file)
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", withoutPath(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", withoutPath(err))
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("longer than %d bytes", maxFile)
	}
	return data, nil
}

// withoutPath is the cause inside a path error: the path is named already, as the operator wrote it.
func withoutPath(err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	return err
}

func readMapping(root *yaml.Node, file string) (map[string]origin, []error) {
	found := map[string]origin{}
	var faults []error
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		where := fmt.Sprintf("%s line %d", file, key.Line)
		f, ok := byFlag(key.Value)
		texts, problem := nodeTexts(f, value)
		switch _, twice := found[f.flag]; {
		case !ok:
			faults = append(faults, unknown(key.Value, value.Value, where, names(asKey)))
		case f.withoutFile:
			faults = append(faults, &Fault{Name: key.Value, Value: value.Value, Where: where,
				Problem: "a settings file cannot name another one"})
		case twice:
			faults = append(faults, &Fault{Name: key.Value, Where: where, Problem: "set twice in the file"})
		case problem != "":
			faults = append(faults, &Fault{Name: key.Value, Value: maskURL(value.Value), Where: where, Problem: problem})
		default:
			found[f.flag] = origin{source: FromFile, where: where, texts: texts}
		}
	}
	return found, faults
}

// nodeTexts is the text of a scalar, or of each scalar of a list. Numbers and truth values are taken as written.
func nodeTexts(f field, n *yaml.Node) ([]string, string) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return nil, "there is no value: leave the setting out, or give it a value"
	case n.Kind == yaml.ScalarNode && f.list:
		return splitList(f, n.Value), ""
	case n.Kind == yaml.ScalarNode:
		return []string{n.Value}, ""
	case n.Kind == yaml.SequenceNode && f.list && len(n.Content) > 0:
		var texts []string
		for _, c := range n.Content {
			if c.Kind != yaml.ScalarNode || c.Tag == "!!null" {
				return nil, "want a list of plain values"
			}
			texts = append(texts, c.Value)
		}
		return texts, ""
	case f.list:
		return nil, "want one value or a list with at least one"
	}
	return nil, "want one plain value"
}
