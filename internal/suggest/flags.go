package suggest

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// DidYouMean returns " (did you mean X?)" with the known word that is closest to the
// typed one, formatted with format. It is empty if none is close.
func DidYouMean(typed string, known []string, format string) string {
	word := Closest(typed, known)
	if word == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean "+format+"?)", word)
}

// FlagError adds advice to an error of package pflag: the flag that was probably meant,
// or the values that the flag accepts. Other errors are returned unchanged.
func FlagError(flags *pflag.FlagSet, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		flags.VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		return fmt.Errorf("%w%s", err, DidYouMean(unknown.GetSpecifiedName(), names, "--%s"))
	}
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Errorf("--%s is %q: %s", bad.GetFlag().Name, bad.GetValue(), Values(bad))
	}
	return err
}

// Values describes the values that the flag accepts.
func Values(bad *pflag.InvalidValueError) string {
	if _, strange := errors.AsType[*strconv.NumError](bad); !strange {
		return bad.Unwrap().Error()
	}
	if bad.GetFlag().Value.Type() == "bool" {
		return "use true or false"
	}
	return "use a whole number"
}
