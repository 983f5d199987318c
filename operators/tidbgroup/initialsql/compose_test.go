package initialsql

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// shells returns the shells of this machine that images have as sh.
func shells() map[string][]string {
	out := map[string][]string{"sh": {"/bin/sh"}}
	for name, command := range map[string][]string{"bash": {"bash", "--posix"}, "busybox": {"busybox", "sh"}} {
		if path, err := exec.LookPath(command[0]); err == nil {
			out[name] = append([]string{path}, command[1:]...)
		}
	}
	return out
}

// mounted lays a Secret out as the kubelet does: the keys are links into a folder
// that is exchanged as a whole.
func mounted(t *testing.T, data map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "..2026_01_02"), 0o700))
	require.NoError(t, os.Symlink("..2026_01_02", filepath.Join(dir, "..data")))
	for key, value := range data {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "..data", key), []byte(value), 0o600))
		require.NoError(t, os.Symlink(filepath.Join("..data", key), filepath.Join(dir, key)))
	}
	return dir
}

// setting is what the script is run with.
type setting struct {
	shell     []string
	host      string
	taken     string
	following string
	secret    map[string]string
}

// run runs the container's own command, with a shell and folders of this machine.
// It returns the file, or what the script says on the way out.
func run(t *testing.T, s setting) (sql, refused string) {
	t.Helper()
	c := Composition{
		Users: &v1alpha1.InitialUsers{Secret: "people", Host: s.host}, Taken: s.taken,
		Into: corev1.VolumeMount{Name: "sql", MountPath: "/etc/tidb-bootstrap"}, Image: "pingcap/tidb:v8.5.7",
	}
	folders := map[string]string{usersDir: mounted(t, s.secret), c.Into.MountPath: t.TempDir()}
	if s.following != "" {
		c.Following = &corev1.VolumeSource{}
		folders[followingDir] = mounted(t, map[string]string{File: s.following})
	}
	container, _ := c.Container()
	command := slices.Clone(container.Command)
	require.Equal(t, []string{"sh", "-c"}, command[:2])
	for i := 3; i < len(command); i++ {
		for theirs, ours := range folders {
			command[i] = strings.Replace(command[i], theirs, ours, 1)
		}
	}
	command = append(slices.Clone(s.shell), command[1:]...)
	shell := exec.CommandContext(t.Context(), command[0], command[1:]...)
	var out, err strings.Builder
	shell.Stdout, shell.Stderr = &out, &err
	if shell.Run() != nil {
		assert.NotEmpty(t, err.String(), "it says why")
		return "", err.String()
	}
	assert.Empty(t, out.String()+err.String(), "no password gets into the log")
	text, readErr := os.ReadFile(filepath.Join(folders[c.Into.MountPath], File))
	require.NoError(t, readErr)
	return string(text), ""
}

// statements reads SQL as TiDB's lexer does, as far as the file goes: words, @, and
// strings in single quotes, whose value it returns in quotes.
func statements(t *testing.T, sql string) [][]string {
	t.Helper()
	var all [][]string
	var one []string
	for i := 0; i < len(sql); {
		switch sql[i] {
		case ';':
			all, one = append(all, one), nil
			i++
		case ' ', '\n':
			i++
		case '@':
			one = append(one, "@")
			i++
		case '\'':
			value := ""
			for i++; ; i++ {
				require.Less(t, i, len(sql), "a string does not end: %q", sql)
				if sql[i] == '\'' {
					break
				}
				if sql[i] == '\\' {
					i++
					require.Contains(t, `'\`, sql[i:i+1], "nothing else is escaped")
				}
				value += sql[i : i+1]
			}
			one = append(one, "<"+value+">")
			i++
		default:
			end := len(sql) - len(strings.TrimLeft(sql[i:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
			require.Greater(t, end, i, "what is %q?", sql[i:])
			one = append(one, sql[i:end])
			i = end
		}
	}
	require.Empty(t, one, "the last statement does not end")
	return all
}

func created(user, host, password string) []string {
	return []string{"CREATE", "USER", "IF", "NOT", "EXISTS", "<" + user + ">", "@", "<" + host + ">", "IDENTIFIED", "BY", "<" + password + ">"}
}

// nasty are passwords that quoting gets wrong.
func nasty() []string {
	out := []string{
		"plain", " ", "  two ends  ", "*", "?", "[a]", "~", "-n", "-e x", "--", "!", "(", "=", "#", "a;b", "a\tb", "%s%n%%", `\n\t\0`, `\%\_`, "é ü 密码 🔑", "\xff\xfe'\x80", "\x01\x7f",
		`'`, `''`, `\`, `\\`, `\'`, `'\`, `"`, `\"`, "`id`", "$HOME", "$(id)", "${x}", "$$", "$$(POD_NAME)", "$(POD_NAME)", "a'; DROP DATABASE mysql; -- ", "/*", "--'", `x' OR '1'='1`,
		strings.Repeat(`'\`, 512),
	}
	every := ""
	for b := 1; b < 256; b++ {
		if b != '\n' && b != '\r' {
			every += string([]byte{byte(b)})
		}
	}
	out = append(out, every)
	random := rand.New(rand.NewPCG(10, 10))
	alphabet := []string{"'", `"`, `\`, "$", "`", "!", "*", "?", "[", "]", "{", "}", "(", ")", "~", "#", ";", "&", "|", "<", ">", "%", " ", "\t", "-", "é", "\xe2", "a", "0"}
	for range 60 {
		password := ""
		for range 1 + random.IntN(30) {
			password += alphabet[random.IntN(len(alphabet))]
		}
		out = append(out, password)
	}
	return out
}

func TestDB10EveryPasswordReachesTiDBAsItIs(t *testing.T) {
	secret, want := map[string]string{}, [][]string{}
	for i, password := range nasty() {
		user := fmt.Sprintf("user-%03d_x.y", i)
		secret[user] = password + strings.Repeat("\n", i%3)
		want = append(want, created(user, "%", password))
	}
	for name, shell := range shells() {
		t.Run(name, func(t *testing.T) {
			sql, refused := run(t, setting{shell: shell, secret: secret})
			require.Empty(t, refused)
			assert.Equal(t, want, statements(t, sql))
		})
	}
}

func TestDB10TheUsersComeFirstAndThenTheSQL(t *testing.T) {
	set := []string{"ALTER", "USER", "<root>", "@", "<%>", "IDENTIFIED", "BY", "<it's>"}
	const grants = "GRANT SELECT ON shop.* TO 'app'@'%';\nUPDATE t SET x = '\\\\$HOME'"
	for name, c := range map[string]struct {
		setting setting
		want    [][]string
	}{
		"users are made in the order of their names": {setting{secret: map[string]string{"b": "2", "a": "1", ".c": "3"}}, [][]string{created("a", "%", "1"), created("b", "%", "2"), created(".c", "%", "3")}},
		"root is there already":                      {setting{secret: map[string]string{"root": "it's\n", "app": "x"}}, [][]string{created("app", "%", "x"), set}},
		"Root is another user than root":             {setting{secret: map[string]string{"Root": "x"}}, [][]string{created("Root", "%", "x")}},
		"a host is everybody's":                      {setting{host: "10.1.%", secret: map[string]string{"root": "it's", "app": "x"}}, [][]string{created("app", "10.1.%", "x"), set, {"RENAME", "USER", "<root>", "@", "<%>", "TO", "<root>", "@", "<10.1.%>"}}},
		"a generated root is left alone":             {setting{taken: "root", secret: map[string]string{"app": "x"}}, [][]string{created("app", "%", "x")}},
	} {
		t.Run(name, func(t *testing.T) {
			c.setting.shell = shells()["sh"]
			sql, refused := run(t, c.setting)
			require.Empty(t, refused)
			assert.Equal(t, c.want, statements(t, sql))
			c.setting.following = grants
			longer, refused := run(t, c.setting)
			require.Empty(t, refused)
			assert.Equal(t, sql+grants, longer)
		})
	}
}

func TestDB10AnInvalidSecretKeepsTiDBFromStarting(t *testing.T) {
	for name, c := range map[string]struct {
		taken  string
		secret map[string]string
		says   string
	}{
		"no user at all":           {"", nil, "Secret people: it has no keys: add one"},
		"no password":              {"", map[string]string{"app": ""}, "Secret people: key app: the password is empty"},
		"a password of line ends":  {"", map[string]string{"app": "\n\n"}, "key app: the password is empty"},
		"a file instead of a word": {"", map[string]string{"tls.key": "-----BEGIN\nsecret\n"}, "key tls.key: the password has a second line"},
		"a line before the word":   {"", map[string]string{"app": "\nsecret"}, "key app: the password has a second line"},
		"a file from Windows":      {"", map[string]string{"app": "secret\r\n"}, "key app: the password has a carriage return"},
		"far too long a word":      {"", map[string]string{"app": strings.Repeat("s", 1025)}, "key app: the password is longer than 1024 bytes"},
		"too long a name":          {"", map[string]string{strings.Repeat("n", 33): "secret"}, "a user's name may have 32 characters"},
		"two passwords for root":   {"root", map[string]string{"root": "secret"}, "key root: its password is generated, by spec.initialization.rootPassword: remove the key"},
	} {
		for shell, command := range shells() {
			t.Run(name+" with "+shell, func(t *testing.T) {
				sql, refused := run(t, setting{shell: command, taken: c.taken, secret: c.secret})
				assert.Empty(t, sql)
				assert.Contains(t, refused, c.says)
				assert.Equal(t, 1, strings.Count(refused, "\n"), "one line")
				for password := range maps.Values(c.secret) {
					assert.False(t, strings.TrimSpace(password) != "" && strings.Contains(refused, strings.TrimSpace(password)), "no password gets into the log")
				}
			})
		}
	}
}

func TestTheKubeletDoesNotExpandTheScript(t *testing.T) {
	assert.NotContains(t, script, "$$", "the kubelet makes one of two")
	container, volumes := Composition{Users: &v1alpha1.InitialUsers{Secret: "people"}, Into: corev1.VolumeMount{Name: "sql", MountPath: "/x"}}.Container()
	assert.Empty(t, container.Env, "a variable in $() would be replaced")
	assert.True(t, *container.SecurityContext.ReadOnlyRootFilesystem)
	require.Len(t, volumes, 1)
	assert.Nil(t, volumes[0].Secret.Optional)
}
