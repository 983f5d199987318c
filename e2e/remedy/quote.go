package remedy

import "strings"

// enough is how many letters a quotation has: fewer are in many texts.
const enough = 14

// Quotes reports whether a string of a test is a part of a message that is made of a
// text: the test then fails when the text is another one.
func Quotes(literal, format string) bool {
	for _, piece := range pieces(format) {
		if len(piece) >= enough && strings.Contains(literal, piece) || len(literal) >= enough && strings.Contains(piece, literal) {
			return true
		}
	}
	// Names stand in the literal where the text has verbs.
	pattern, err := Pattern(format)
	return err == nil && pattern.MatchString(literal)
}

// pieces are the parts of a text between its verbs.
func pieces(format string) []string {
	var out []string
	for _, piece := range verb.Split(strings.ReplaceAll(format, "%%", "\x00"), -1) {
		if piece = strings.TrimSpace(strings.ReplaceAll(piece, "\x00", "%")); piece != "" {
			out = append(out, piece)
		}
	}
	return out
}
