package testservers_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/internal/integration/testservers"
)

// starter makes the test binary a process that starts a server and waits.
const starter = "SKEIN_TEST_STARTS_A_SERVER"

func TestServerEndsWithTheProcessThatStartedIt(t *testing.T) {
	servers := map[string]func(testing.TB) (address string){
		"Redis": func(t testing.TB) string { return testservers.OwnRedis(t).(*redis.Client).Options().Addr },
		"Postgres": func(t testing.TB) string {
			c := testservers.OwnPostgres(t).Config().ConnConfig
			return net.JoinHostPort(c.Host, fmt.Sprint(c.Port))
		},
	}

	if open := servers[os.Getenv(starter)]; open != nil {
		fmt.Println(open(t))
		io.Copy(io.Discard, os.Stdin)
		return
	}

	for name := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endsWithItsProcess(t, name)
		})
	}
}

func endsWithItsProcess(t *testing.T, server string) {
	test, _, _ := strings.Cut(t.Name(), "/")
	process := exec.Command(os.Args[0], "-test.run=^"+test+"$")
	process.Env = append(os.Environ(), starter+"="+server)

	input, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	output, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}

	serves := func() bool {
		conn, err := net.Dial("tcp", strings.TrimSpace(line))
		if err == nil {
			conn.Close()
		}
		return err == nil
	}
	if !serves() {
		t.Fatal("the server does not serve")
	}

	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	process.Wait()
	until(t, "the server of a killed process ends", func(context.Context) bool { return !serves() })
}
