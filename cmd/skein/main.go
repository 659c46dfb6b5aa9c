// Command skein shows the queues of a store, and acts on them: see skein help, or
// docs/reference/cli.md.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // schedules need no zone data on the host

	"github.com/redis/go-redis/v9/logging"

	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/internal/command"
)

func main() {
	logging.Disable() // errors contain the same information
	ctx, stop := command.Context(context.Background())
	p := process{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.Getenv, connect: backends.Connect}
	code := p.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
