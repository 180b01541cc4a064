package main

import (
	"encoding/base64"
	"encoding/hex"
	"maps"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// materials has the version and the checksum of each module.
type materials map[string]debug.Module

// add adds the modules of an executable. The main module gets the version of the release, and
// the toolchain counts as a module, because its library is part of the executable.
func (m materials) add(info *debug.BuildInfo, version string) {
	m[info.Main.Path] = debug.Module{Path: info.Main.Path, Version: version}
	m["std"] = debug.Module{Path: "std", Version: info.GoVersion}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		m[dep.Path] = *dep
	}
}

type document struct {
	SPDXVersion       string         `json:"spdxVersion"`
	DataLicense       string         `json:"dataLicense"`
	SPDXID            string         `json:"SPDXID"`
	Name              string         `json:"name"`
	DocumentNamespace string         `json:"documentNamespace"`
	CreationInfo      creation       `json:"creationInfo"`
	Packages          []part         `json:"packages"`
	Relationships     []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type part struct {
	SPDXID           string      `json:"SPDXID"`
	Name             string      `json:"name"`
	VersionInfo      string      `json:"versionInfo"`
	DownloadLocation string      `json:"downloadLocation"`
	ExternalRefs     []reference `json:"externalRefs"`
	Comment          string      `json:"comment,omitempty"`
}

type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

const (
	self = "SPDXRef-DOCUMENT"
	root = "gopf.dev/gopf"
)

var notInIDs = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func idOf(module string) string { return "SPDXRef-" + notInIDs.ReplaceAllString(module, "-") }

// document returns the bill: the document describes the root module, which contains the rest.
func (m materials) document(version string, now time.Time) document {
	d := document{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: self, Name: "gopf " + version,
		DocumentNamespace: "https://gopf.dev/sbom/" + version,
		CreationInfo:      creation{now.UTC().Format(time.RFC3339), []string{"Tool: gopf.dev/gopf/internal/dev/sbom"}},
		Relationships:     []relationship{{self, "DESCRIBES", idOf(root)}},
	}
	for _, path := range slices.Sorted(maps.Keys(m)) {
		module := m[path]
		p := part{
			SPDXID: idOf(path), Name: path, VersionInfo: module.Version, DownloadLocation: "NOASSERTION",
			ExternalRefs: []reference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + module.Version}},
		}
		if sum, ok := strings.CutPrefix(module.Sum, "h1:"); ok {
			if raw, err := base64.StdEncoding.DecodeString(sum); err == nil {
				p.Comment = "Checksum of the Go checksum database (h1), in hexadecimal: " + hex.EncodeToString(raw)
			}
		}
		d.Packages = append(d.Packages, p)
		if path != root {
			d.Relationships = append(d.Relationships, relationship{idOf(root), "CONTAINS", idOf(path)})
		}
	}
	return d
}
