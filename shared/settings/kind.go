package settings

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is what the value of an item is, which decides when two spellings of it
// are the same.
type Kind string

const (
	// Text is a word, such as the name of a label; letters' case counts.
	Text Kind = "word"
	// LogLevel is a Text for which TiKV has two names of some levels, and shows one of them.
	LogLevel Kind = "log level"
	// Number is a whole number. No member starts with a fraction in its place, 4.0 and 1e6 among
	// them.
	Number Kind = "whole number"
	// Fraction is a number that may have a fraction.
	Fraction Kind = "number"
	// Bool is true or false.
	Bool Kind = "true or false"
	// Size is a number of bytes, or text with a unit: 64MB, 1GiB. All units are
	// powers of 1024, as in TiKV.
	Size Kind = "size"
	// Duration is text with units, such as 10s or 1d12h.
	Duration Kind = "duration"
)

// types are those that a member takes in its file for a kind. It may take others while it
// runs, and does not start with a file that has them.
func (k Kind) types() []string {
	switch k {
	case Number:
		return []string{"int64"}
	case Fraction:
		return []string{"int64", "float64"}
	case Bool:
		return []string{"bool"}
	case Size:
		return []string{"string", "int64"}
	case Text, LogLevel, Duration:
	}
	return []string{"string"}
}

// scalar returns the text by which a member is told a value; empty if a file must not have
// such a value for the item.
func (k Kind) scalar(value leaf) string {
	if !slices.Contains(k.types(), value.kind) {
		return ""
	}
	if n, ok := value.value.(float64); ok {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return fmt.Sprint(value.value)
}

// Normalize returns the one form of a value. What is no value of the kind is left as
// it is: the member will say what it thinks of it.
func (k Kind) Normalize(text string) string {
	switch k {
	case Number, Fraction:
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return strconv.FormatFloat(n, 'g', -1, 64)
		}
	case Bool:
		if b, err := strconv.ParseBool(text); err == nil {
			return strconv.FormatBool(b)
		}
	case Size:
		if n, ok := parseQuantity(text, sizeUnits()); ok {
			return strconv.FormatFloat(n, 'f', 0, 64)
		}
	case Duration:
		if n, ok := parseQuantity(text, durationUnits()); ok {
			return strconv.FormatFloat(n, 'f', 0, 64)
		}
	case Text:
	case LogLevel:
		switch level := strings.ToLower(text); level {
		case "warning":
			return "warn"
		case "critical":
			return "fatal"
		default:
			return level
		}
	}
	return text
}

// normalizeJSON returns the one form of a value that a member shows, as JSON has it.
func (k Kind) normalizeJSON(value any) string {
	if n, ok := value.(float64); ok {
		return k.Normalize(strconv.FormatFloat(n, 'f', -1, 64))
	}
	return k.Normalize(fmt.Sprint(value))
}

// zero is the one form of the value that a process has of an item that nothing sets.
func (k Kind) zero() string {
	switch k {
	case Bool:
		return "false"
	case Text, LogLevel:
		return ""
	case Number, Fraction, Size, Duration:
	}
	return "0"
}

// sizeUnits are the units of a Size in bytes, as TiKV spells them.
func sizeUnits() map[string]float64 {
	out := map[string]float64{"": 1, "B": 1}
	unit := 1.0
	for _, letter := range []string{"K", "M", "G", "T", "P"} {
		unit *= 1024
		out[letter], out[letter+"B"], out[letter+"iB"] = unit, unit, unit
	}
	return out
}

// durationUnits are the units of a Duration in microseconds.
func durationUnits() map[string]float64 {
	micro := func(d time.Duration) float64 { return float64(d / time.Microsecond) }
	return map[string]float64{
		"us": 1, "ms": micro(time.Millisecond), "s": micro(time.Second), "m": micro(time.Minute), "h": micro(time.Hour), "d": micro(24 * time.Hour),
	}
}

// parseQuantity adds up a text of numbers and units. What is less than the smallest unit is
// cut off, as TiKV does.
func parseQuantity(text string, units map[string]float64) (float64, bool) {
	rest, sum := strings.TrimSpace(text), 0.0
	if rest == "" {
		return 0, false
	}
	for rest != "" {
		number := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789."))]
		rest = strings.TrimSpace(rest[len(number):])
		unit := rest[:len(rest)-len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))]
		rest = strings.TrimSpace(rest[len(unit):])
		n, err := strconv.ParseFloat(number, 64)
		per, known := units[unit]
		if err != nil || !known {
			return 0, false
		}
		sum += n * per
	}
	return math.Trunc(sum), true
}
