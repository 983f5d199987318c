package settings

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kind is what the value of an item is, which decides when two spellings of it
// are the same.
type Kind string

const (
	// Text is a word, such as a log level; letters' case does not count.
	Text Kind = "word"
	// LogLevel is a Text for which TiKV has two names of some levels, and shows one of them.
	LogLevel Kind = "log level"
	// Number is a whole number or a fraction.
	Number Kind = "number"
	// Bool is true or false.
	Bool Kind = "true or false"
	// Size is a number of bytes, or text with a unit: 64MB, 1GiB. All units are
	// powers of 1024, as in TiKV.
	Size Kind = "size"
	// Duration is text with units, such as 10s or 1d12h; a number is milliseconds.
	Duration Kind = "duration"
)

// scalar returns the text by which a member is told a value; empty if the item has no
// such value: a list, a table, a time, or a number or a truth in quotation marks. A member may
// take that while it runs, and does not start with a file that has it.
func (k Kind) scalar(value leaf) string {
	switch k {
	case Number:
		if value.kind == "string" || value.kind == "bool" {
			return ""
		}
	case Bool:
		if value.kind != "bool" {
			return ""
		}
	}
	switch value.kind {
	case "string", "int64", "bool":
		return value.text
	case "float64":
		if n, err := strconv.ParseFloat(value.text, 64); err == nil {
			return strconv.FormatFloat(n, 'f', -1, 64)
		}
	}
	return ""
}

// Normalize returns the one form of a value. What is no value of the kind is left as
// it is: the member will say what it thinks of it.
func (k Kind) Normalize(text string) string {
	switch k {
	case Number:
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return strconv.FormatFloat(n, 'g', -1, 64)
		}
	case Bool:
		if b, err := strconv.ParseBool(text); err == nil {
			return strconv.FormatBool(b)
		}
	case Size:
		if n, ok := parseQuantity(text, "B", sizeUnits()); ok {
			return strconv.FormatFloat(n, 'f', 0, 64)
		}
	case Duration:
		if n, ok := parseQuantity(text, "ms", durationUnits()); ok {
			return strconv.FormatFloat(n, 'f', 0, 64)
		}
	case Text:
		return strings.ToLower(text)
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

// sizeUnits are the units of a Size in bytes.
func sizeUnits() map[string]float64 {
	out := map[string]float64{"": 1, "b": 1}
	unit := 1.0
	for _, letter := range []string{"k", "m", "g", "t", "p"} {
		unit *= 1024
		out[letter], out[letter+"b"], out[letter+"ib"] = unit, unit, unit
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

// parseQuantity adds up a text of numbers and units. A number alone is of the unit bare.
func parseQuantity(text, bare string, units map[string]float64) (float64, bool) {
	rest, sum := strings.ToLower(strings.TrimSpace(text)), 0.0
	if _, err := strconv.ParseFloat(rest, 64); err == nil {
		rest += strings.ToLower(bare)
	}
	if rest == "" {
		return 0, false
	}
	for rest != "" {
		number := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789."))]
		rest = strings.TrimSpace(rest[len(number):])
		unit := rest[:len(rest)-len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz"))]
		rest = strings.TrimSpace(rest[len(unit):])
		n, err := strconv.ParseFloat(number, 64)
		per, known := units[unit]
		if err != nil || !known {
			return 0, false
		}
		sum += n * per
	}
	return sum, true
}
