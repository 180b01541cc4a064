package suggest

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// DidYouMean returns " (did you mean X?)" for the known word that is most like the
// typed one, with the format around the word; "" if none is like it.
func DidYouMean(typed string, known []string, format string) string {
	word := Closest(typed, known)
	if word == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean "+format+"?)", word)
}

// FlagError makes an error of package pflag say what to do: it names the flag that
// an unknown one was meant to be, or the values that a flag takes. Other errors stay
// as they are.
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

// Values says which values the flag takes.
func Values(bad *pflag.InvalidValueError) string {
	if _, strange := errors.AsType[*strconv.NumError](bad); !strange {
		return bad.Unwrap().Error()
	}
	if bad.GetFlag().Value.Type() == "bool" {
		return "give true or false"
	}
	return "give a whole number"
}
