package tidb
import ("testing";"os";"os/exec";"fmt";"strings";"log/slog")
func TestZZ(t *testing.T){
 slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr,nil)))
 QuietLibraries(os.Stderr)
 r:=start(t,withStore(t)).ready(t)
 c:=exec.Command("mariadb","-h","127.0.0.1","-P",fmt.Sprint(r.cfg.Port),"-u","root","-e","select version()")
 out,err:=c.CombinedOutput()
 t.Log(strings.TrimSpace(string(out)),err)
}
