package jsonvalue

// Weight returns the approximate memory of a decoded value in bytes: of maps, lists and texts.
func Weight(value any) (bytes int) {
	const (
		word    = 16 // of an interface or the head of a text
		table   = 48 // of an empty map
		element = 2 * word
	)
	switch v := value.(type) {
	case map[string]any:
		bytes = table
		for key, one := range v {
			bytes += element + word + len(key) + Weight(one)
		}
	case []any:
		bytes = element
		for _, one := range v {
			bytes += word + Weight(one)
		}
	case string:
		bytes = word + len(v)
	default:
		bytes = word / 2
	}
	return bytes
}

// LongestPath returns the length of the longest path to a value, in bytes of keys. Decoders that
// report unknown fields by their paths take as much memory for each of them.
func LongestPath(value any) (longest int) {
	switch v := value.(type) {
	case map[string]any:
		for key, one := range v {
			longest = max(longest, len(key)+LongestPath(one))
		}
	case []any:
		for _, one := range v {
			longest = max(longest, LongestPath(one))
		}
	}
	return longest
}
