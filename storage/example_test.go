package storage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/storage/storagetest"
)

// Files stores everything in a folder instead of on the objects: one file per object,
// named by its UID. A storage in a database looks much the same.
type Files struct{ Folder string }

// FileProgress and FileBase are two views of such folders.
type (
	FileProgress struct{ Files }
	FileBase     struct{ Files }
)

var (
	_ storage.Progress = FileProgress{}
	_ storage.Base     = FileBase{}
)

func (f Files) read(o storage.Object, into any) (found bool, err error) {
	text, err := os.ReadFile(filepath.Join(f.Folder, o.Identity().UID+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(text, into)
}

func (f Files) write(o storage.Object, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(f.Folder, o.Identity().UID+".json"), text, 0o600)
}

func (f FileProgress) Load(_ context.Context, o storage.Object, ids []string) (map[string]storage.Record, error) {
	var all map[string]storage.Record
	if _, err := f.read(o, &all); err != nil {
		return nil, err
	}
	records := make(map[string]storage.Record)
	for _, id := range ids {
		if record, ok := all[id]; ok {
			records[id] = record
		}
	}
	return records, nil
}

func (f FileProgress) Save(_ context.Context, o storage.Object, _ storage.Patch, changed map[string]storage.Record, purge []string) error {
	all := make(map[string]storage.Record)
	if _, err := f.read(o, &all); err != nil {
		return err
	}
	for id, record := range changed {
		all[id] = record
	}
	for _, id := range purge {
		delete(all, id)
	}
	return f.write(o, all)
}

// Clean does nothing, because nothing is stored on the objects.
func (FileProgress) Clean(map[string]any) {}

func (f FileBase) Load(_ context.Context, o storage.Object) (map[string]any, bool, error) {
	var text string
	if found, err := f.read(o, &text); err != nil || !found {
		return nil, false, err
	}
	return storage.DecodeEssence(text)
}

func (f FileBase) Save(_ context.Context, o storage.Object, _ storage.Patch, essence map[string]any) error {
	text, err := storage.EncodeEssence(essence)
	if err != nil {
		return err
	}
	return f.write(o, text)
}

// Clean does nothing, because nothing is stored on the objects.
func (FileBase) Clean(map[string]any) {}

func TestTheExampleStoragesConform(t *testing.T) {
	t.Parallel()
	t.Run("progress", func(t *testing.T) {
		t.Parallel()
		storagetest.Progress(t, FileProgress{Files{t.TempDir()}})
	})
	t.Run("base", func(t *testing.T) {
		t.Parallel()
		storagetest.Base(t, FileBase{Files{t.TempDir()}})
	})
}

func ExampleMultiProgress() {
	// A move from Kopf's annotations to files: both are read, files first, and nothing new
	// is written to the objects.
	folder, err := os.MkdirTemp("", "progress")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	files := FileProgress{Files{folder}}
	moving := storage.MultiProgress(files, storage.RetiredProgress(storage.DefaultProgress()))

	object := storagetest.Body{"metadata": map[string]any{
		"uid":         "1",
		"annotations": map[string]any{"kopf.zalando.org/create": `{"retries":1,"success":false,"failure":false}`},
	}}
	ctx := context.Background()
	records, err := moving.Load(ctx, object, []string{"create"})
	fmt.Println("from the object:", records["create"].Retries, err)

	patch := storagetest.Patch{}
	record := records["create"]
	record.Retries++
	err = moving.Save(ctx, object, patch, map[string]storage.Record{"create": record}, nil)
	fmt.Println("for the object:", patch, err)

	records, err = moving.Load(ctx, object, []string{"create"})
	fmt.Println("from the file:", records["create"].Retries, err)

	err = moving.Save(ctx, object, patch, nil, []string{"create"})
	fmt.Println("for the object:", patch, err)
	// Output:
	// from the object: 1 <nil>
	// for the object: map[] <nil>
	// from the file: 2 <nil>
	// for the object: map[metadata:map[annotations:map[kopf.zalando.org/create:<nil>]]] <nil>
}
