package docs

import "strings"

// area is a folder with its subfolders, except those that are areas themselves.
// The numbers limit the lines with phrases that CONTRIBUTING.md rules out.
//
// Limits only go down. A new phrase is rewritten, not allowed by a higher limit.
type area struct {
	path                      string // "." is the root
	pages, comments, messages int
}

// slack is how far a count may be below its limit before the limit must follow.
const slack = 5

var areas = []area{
	{path: ".", pages: 0, comments: 0, messages: 0},
	{path: "bench", pages: 0, comments: 0, messages: 0},
	{path: "cli", pages: 0, comments: 0, messages: 0},
	{path: "cmd", pages: 0, comments: 1, messages: 0},
	{path: "cmd/devcluster", pages: 0, comments: 0, messages: 0},
	{path: "docs", pages: 0, comments: 0, messages: 0},
	{path: "examples", pages: 0, comments: 1, messages: 1},
	{path: "gopftest", pages: 0, comments: 2, messages: 0},
	{path: "internal", pages: 0, comments: 0, messages: 4},
	{path: "storage", pages: 0, comments: 2, messages: 0},
	{path: "webhook", pages: 0, comments: 2, messages: 0},
}

// areaOf returns the area with the longest path that contains the file.
func areaOf(file string) area {
	best := areas[0]
	for _, a := range areas {
		if strings.HasPrefix(file, a.path+"/") && len(a.path) >= len(best.path) {
			best = a
		}
	}
	return best
}
