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
