package gopftest

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// schemaCache has the results of parsing schemas, by their content. Tests make many
// clusters with the same definitions, and compiling a large schema takes long.
type schemaCache struct {
	mu      sync.Mutex
	schemas map[[sha256.Size]byte]*versionSchema
	valid   map[[sha256.Size]byte]bool // definitions that passed validation
}

// maxCached limits the number of entries: a test may generate definitions.
const maxCached = 1000

// parsedSchemas is shared by all clusters of the process. Its entries do not change.
var parsedSchemas = &schemaCache{schemas: map[[sha256.Size]byte]*versionSchema{}, valid: map[[sha256.Size]byte]bool{}}

// digest identifies a value by its JSON. ok is false if it has none.
func digest(v any) (key [sha256.Size]byte, ok bool) {
	text, err := json.Marshal(v)
	return sha256.Sum256(text), err == nil
}

// isAnything reports whether the schema is that of kinds defined by name only. Their
// objects need no validation.
func isAnything(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.Type == "object" && s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields &&
		len(s.Properties) == 0 && len(s.Required) == 0 && len(s.XValidations) == 0 && s.Default == nil &&
		len(s.AllOf)+len(s.AnyOf)+len(s.OneOf) == 0 && s.Not == nil && s.MinProperties == nil && s.MaxProperties == nil
}

// schemaOf is newVersionSchema with the cache.
func (s *schemaCache) schemaOf(v *apiextensionsv1.CustomResourceValidation) (*versionSchema, error) {
	key, ok := digest(v)
	s.mu.Lock()
	known, found := s.schemas[key]
	s.mu.Unlock()
	if found && ok {
		return known, nil
	}
	parsed, err := newVersionSchema(v)
	if err == nil && ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.schemas) < maxCached {
			s.schemas[key] = parsed
		}
	}
	return parsed, err
}

// isValid reports whether a definition with the same content passed validation before.
func (s *schemaCache) isValid(definition any) bool {
	key, ok := digest(definition)
	s.mu.Lock()
	defer s.mu.Unlock()
	return ok && s.valid[key]
}

// setValid notes that a definition passed validation.
func (s *schemaCache) setValid(definition any) {
	key, ok := digest(definition)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ok && len(s.valid) < maxCached {
		s.valid[key] = true
	}
}
