package remedy

import (
	"regexp"
	"slices"
	"strings"
)

// Command is one command line of a message, as a user would paste it.
type Command struct {
	// Line is its text, quotes and all.
	Line string
	// Words of it, without quotes.
	Words []string
}

// begins is where a command begins. Only kubectl is called by messages of the suite:
// what else a user could paste is found as well, so that it is not overlooked.
var begins = regexp.MustCompile(`(?:^|[\s(:'])((?:kubectl|pd-ctl|curl|make (?:demo|rig|e2e)) \S)`)

// Commands returns the commands of a message, in their order.
func Commands(message string) []Command {
	var out []Command
	for at := 0; at < len(message); {
		found := begins.FindStringSubmatchIndex(message[at:])
		if found == nil {
			return out
		}
		begin := at + found[2]
		line := cutCommand(message[begin:])
		out = append(out, Command{Line: line, Words: splitWords(line)})
		at = begin + max(len(line), 1)
	}
	return out
}

// cutCommand returns what a user would take for the command that a text begins with: all
// up to the punctuation that ends it, outside quotes and $().
func cutCommand(text string) string {
	var quote byte
	depth := 0
	for i := range len(text) {
		c := text[i]
		next := byte(' ')
		if i+1 < len(text) {
			next = text[i+1]
		}
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '(' && i > 0 && text[i-1] == '$':
			depth++
		case c == ')' && depth > 0:
			depth--
		case depth > 0:
		case c == ')' || c == ';' || c == '\n',
			(c == ',' || c == ':' || c == '?' || c == '.') && (next == ' ' || next == '\n'),
			c == ' ' && next == '(':
			return strings.TrimSpace(text[:i])
		}
	}
	return strings.TrimSpace(text)
}

// splitWords splits a command line as a shell does.
func splitWords(line string) []string {
	var out []string
	var word strings.Builder
	var quote rune
	depth, open := 0, false
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && depth == 0 && (c == '\'' || c == '"'):
			quote, open = c, true
		case quote == 0 && c == '(':
			depth++
			word.WriteRune(c)
		case quote == 0 && c == ')':
			depth--
			word.WriteRune(c)
		case quote == 0 && depth == 0 && c == ' ':
			if open || word.Len() > 0 {
				out = append(out, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(c)
		}
	}
	if open || word.Len() > 0 {
		out = append(out, word.String())
	}
	return out
}

// Effect is what a command does.
type Effect string

// The effects that a command may have.
const (
	// Reads is a command that changes nothing.
	Reads Effect = "reads"
	// Edits is one that opens an editor.
	Edits Effect = "edits"
	// Changes is one that changes something at once.
	Changes Effect = "changes"
	// Executes is one that runs a program in a container.
	Executes Effect = "executes"
	// Unknown is one that kubectl of this suite's messages does not have.
	Unknown Effect = "unknown"
)

// verbEffects are those of the verbs that messages use.
func verbEffects() map[string]Effect {
	return map[string]Effect{
		"get": Reads, "describe": Reads, "logs": Reads, "explain": Reads,
		"edit": Edits, "exec": Executes,
		"annotate": Changes, "create": Changes, "delete": Changes, "label": Changes, "patch": Changes, "scale": Changes, "uncordon": Changes,
	}
}

// Placeholders are the words that a user has to replace before pasting: a file that
// only he has, the Instance that he wants, and labels of his own nodes. There are no others.
func Placeholders() []string { return []string{"FILE", "INSTANCE", "LABEL,LABEL"} }

// capitals are what a placeholder is written in.
var capitals = regexp.MustCompile(`[A-Z]{4,}(?:,[A-Z]{4,})*`)

// Placeholder returns the first word of the command that a user has to replace,
// empty if it can be pasted as it is.
func (c Command) Placeholder() string {
	return capitals.FindString(quoted.ReplaceAllString(c.Line, ""))
}

// quoted is what a shell takes as it is.
var quoted = regexp.MustCompile(`'[^']*'|"[^"]*"`)

// Verb returns what kubectl is to do; empty if it is not kubectl.
func (c Command) Verb() string {
	if at := c.verb(); at > 0 {
		return c.Words[at]
	}
	return ""
}

// verb is at which word the verb stands, 0 if nowhere.
func (c Command) verb() int {
	if len(c.Words) == 0 || c.Words[0] != "kubectl" {
		return 0
	}
	for i := 1; i < len(c.Words); i++ {
		switch {
		case c.Words[i] == "-n":
			i++
		case !strings.HasPrefix(c.Words[i], "-"):
			return i
		}
	}
	return 0
}

// Rest returns the command from its verb on; empty if it is not kubectl.
func (c Command) Rest() string {
	if at := c.verb(); at > 0 {
		return strings.Join(c.Words[at:], " ")
	}
	return ""
}

// Effect returns what the command does.
func (c Command) Effect() Effect {
	if effect, known := verbEffects()[c.Verb()]; known {
		return effect
	}
	return Unknown
}

// Targets returns what the command is about: a resource as kubectl takes it, and the
// names of objects; empty if it names none.
func (c Command) Targets() (resource string, names []string) {
	at := c.verb()
	if at == 0 {
		return "", nil
	}
	var plain []string
	for i := at + 1; i < len(c.Words) && c.Words[i] != "--"; i++ {
		switch word := c.Words[i]; {
		case slices.Contains([]string{"-n", "-c", "-l", "-L", "-p", "-o"}, word):
			i++
		case strings.HasPrefix(word, "-"):
		case c.Verb() == "annotate" && (strings.Contains(word, "=") || strings.HasSuffix(word, "-")):
		default:
			plain = append(plain, word)
		}
	}
	switch {
	case c.Verb() == "uncordon":
		return "node", plain
	case len(plain) == 0 || c.Verb() == "explain":
		return "", nil
	case strings.Contains(plain[0], "/"):
		resource, name, _ := strings.Cut(plain[0], "/")
		return resource, []string{name}
	case c.Verb() == "logs":
		return "pod", plain[:1]
	}
	return plain[0], plain[1:]
}

// Shape returns the command without the names that differ from object to object.
func (c Command) Shape() string {
	resource, names := c.Targets()
	var out []string
	for _, word := range c.Words {
		switch key, _, _ := strings.Cut(word, "="); {
		case word == resource:
			out = append(out, word)
		case slices.Contains(names, word):
			out = append(out, "NAME")
		case strings.HasPrefix(word, "-") || word == c.Verb():
			out = append(out, key)
		}
	}
	return strings.Join(out, " ")
}
