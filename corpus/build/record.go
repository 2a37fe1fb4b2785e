package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"plumbline/corpus"
)

// builderVersion changes when the same sources and seed would give another pack.
const builderVersion = "plumbline corpus builder 1"

// packSeed is what every choice of the builder and every record goes back to.
const packSeed = 20310614

// buildRecord is corpus-build.json: what the pack was made of and how. With the sources it is enough to put every
// prompt together again, without a tokenizer.
type buildRecord struct {
	Builder string `json:"builder"`
	Pack    string `json:"pack"`
	Seed    uint64 `json:"seed"`
	// Tokenizer names the data that sizes were counted with; TemplateHead is the room in tokens that was left for the
	// chat template.
	Tokenizer    tokenizerRecord `json:"tokenizer"`
	TemplateHead int             `json:"template_head_tokens"`
	Passages     []passageFile   `json:"passages"`
	Sources      []sourceFile    `json:"sources"`
	Prompts      []promptRecord  `json:"prompts"`
}

type tokenizerRecord struct {
	Name   string `json:"name"`
	SHA256 string `json:"data_sha256"`
}

type sourceFile struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
}

type passageFile struct {
	sourceFile
	Genre    string `json:"genre"`
	Passages int    `json:"passages"`
	Words    int    `json:"words"`
}

// promptRecord tells how one prompt was composed. SizeTokens is the length aimed at, template's head included, and
// ContentTokens that of the message. Both, and the pieces, are absent for a prompt that is one source text.
type promptRecord struct {
	ID            string `json:"id"`
	SizeTokens    int    `json:"size_tokens,omitzero"`
	ContentTokens int    `json:"content_tokens,omitzero"`
	Words         int    `json:"words"`
	Bytes         int    `json:"bytes"`
	// Pieces in order: "passage FILE/NUMBER", "record KIND SEED" or "needle NUMBER", all counted from 1.
	Pieces []string `json:"pieces,omitzero"`
}

// describe lists the sources with their digests.
func (r *buildRecord) describe(src *sources) error {
	for _, file := range sourceList("passages/*.txt") {
		text, err := readSource(file)
		if err != nil {
			return err
		}
		f := passageFile{sourceFile: sourceFile{file, digest(text)}}
		for _, p := range src.passages {
			if "passages/"+p.id[:strings.Index(p.id, "/")]+".txt" == file {
				f.Genre = p.genre
				f.Passages++
				f.Words += len(strings.Fields(p.text))
			}
		}
		r.Passages = append(r.Passages, f)
	}
	for _, file := range slices.Concat(sourceList("source/*.*"), sourceList("source/*/*.*")) {
		text, err := readSource(file)
		if err != nil {
			return err
		}
		r.Sources = append(r.Sources, sourceFile{file, digest(text)})
	}
	return nil
}

func digest(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// render makes the files of the pack, by path, from the sources, the record and the counts. It chooses nothing.
func render(src *sources, record *buildRecord, counts corpus.TokenCounts) (map[string][]byte, error) {
	files := map[string][]byte{}
	index := corpus.Index{ID: record.Pack, Tokenizer: record.Tokenizer.Name}
	for i, p := range src.prompts {
		if i >= len(record.Prompts) || record.Prompts[i].ID != p.ID {
			return nil, fmt.Errorf("render prompt %q: the build record has no such prompt in place %d", p.ID, i+1)
		}
		text, err := src.assemble(p, record.Prompts[i].Pieces)
		if err != nil {
			return nil, err
		}
		entry := corpus.IndexEntry{
			ID: p.ID, Phase: p.Phase, CaseID: p.CaseID, Category: p.Category, Repetition: p.Repetition,
			File: "prompts/" + p.ID + ".txt",
		}
		files[entry.File] = []byte(text)
		if p.Tools {
			entry.Tools = "tools/" + p.CaseID + ".json"
			tools, err := readSource("source/" + entry.Tools)
			if err != nil {
				return nil, err
			}
			files[entry.Tools] = []byte(tools)
		}
		index.Prompts = append(index.Prompts, entry)
	}
	for name, content := range map[string]any{
		corpus.PackFile: index, corpus.AnswersFile: src.answers, corpus.TokenCountsFile: counts, corpus.BuildRecordFile: record,
	} {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(content); err != nil {
			return nil, fmt.Errorf("render %q: %w", name, err)
		}
		files[name] = b.Bytes()
	}
	files[corpus.ManifestFile] = corpus.Manifest(files)
	return files, nil
}
