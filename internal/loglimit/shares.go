package loglimit

import "maps"

// Shares is a map with a limited number of entries, which namespaces share fairly. If it is
// full, an entry displaces one of the namespace with the most entries. So a namespace with
// many entries keeps nothing from the others. It is not safe for concurrent use.
type Shares[K comparable, V any] struct {
	Limit int // of the entries of all namespaces

	of  map[string]map[K]V // by namespace
	len int
}

// Get returns the entry of a key.
func (s *Shares[K, V]) Get(namespace string, key K) (value V, ok bool) {
	value, ok = s.of[namespace][key]
	return value, ok
}

// Put adds an entry, or replaces the one of the key. It returns false if there is no room,
// because no other namespace has clearly more entries. displaced is called with the entry
// that was removed for it; it may be nil.
func (s *Shares[K, V]) Put(namespace string, key K, value V, displaced func(K, V)) bool {
	if _, has := s.of[namespace][key]; !has {
		if s.len >= s.Limit && !s.displace(len(s.of[namespace]), displaced) {
			return false
		}
		s.len++
	}
	if s.of == nil {
		s.of = map[string]map[K]V{}
	}
	if s.of[namespace] == nil {
		s.of[namespace] = map[K]V{}
	}
	s.of[namespace][key] = value
	return true
}

// displace removes an entry of the namespace with the most entries, if it has at least two
// more than a namespace with the given number. With fewer, two namespaces would displace
// each other's entries in turns.
func (s *Shares[K, V]) displace(own int, displaced func(K, V)) bool {
	largest, most := "", own+1
	for namespace, entries := range s.of {
		if len(entries) > most {
			largest, most = namespace, len(entries)
		}
	}
	if most == own+1 {
		return false
	}
	for key, value := range s.of[largest] {
		s.remove(largest, key)
		if displaced != nil {
			displaced(key, value)
		}
		break
	}
	return true
}

func (s *Shares[K, V]) remove(namespace string, key K) {
	s.len--
	if delete(s.of[namespace], key); len(s.of[namespace]) == 0 {
		delete(s.of, namespace)
	}
}

// DeleteFunc removes the entries for which del returns true. del must not change the map.
func (s *Shares[K, V]) DeleteFunc(del func(K, V) bool) {
	for namespace, entries := range s.of {
		s.len -= len(entries)
		maps.DeleteFunc(entries, del)
		s.len += len(entries)
		if len(entries) == 0 {
			delete(s.of, namespace)
		}
	}
}

// Len returns the number of entries.
func (s *Shares[K, V]) Len() int { return s.len }
