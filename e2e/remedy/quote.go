package remedy

import (
	"regexp"
	"strings"
)

// enough is how many letters a quotation has: fewer are in many texts.
const enough = 14

// common is what many texts say: the words of a command.
var common = regexp.MustCompile(`^\W*(kubectl ?)?(-n ?)?((annotate|delete|describe|edit|get|logs|patch|scale) ?)?\w*\W*$`)

// CountQuotedLetters returns how many letters of a string of a test are a part of a message that is
// made of a text, 0 if too few: the test fails when the text is another one.
func CountQuotedLetters(literal, format string) int {
	most := 0
	for _, piece := range splitFormat(format) {
		if !common.MatchString(piece) && len(piece) >= enough && strings.Contains(literal, piece) {
			most = max(most, len(piece))
		}
		if !common.MatchString(literal) && len(literal) >= enough && strings.Contains(piece, literal) {
			most = max(most, len(literal))
		}
	}
	// Names stand in the literal where the text has verbs.
	if pattern, err := CompilePattern(format); err == nil && pattern.MatchString(literal) {
		most = max(most, len(format))
	}
	return most
}

// splitFormat are the parts of a text between its verbs.
func splitFormat(format string) []string {
	var out []string
	for _, piece := range verb.Split(strings.ReplaceAll(format, "%%", "\x00"), -1) {
		if piece = strings.TrimSpace(strings.ReplaceAll(piece, "\x00", "%")); piece != "" {
			out = append(out, piece)
		}
	}
	return out
}
