package testservers

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"

	"github.com/ory/dockertest/v3"
	"github.com/ory/dockertest/v3/docker"
)

// containers runs each server in a container. All are in the network of one that
// only sleeps and publishes every port, so that 127.0.0.1 is the same to servers
// and tests, whichever server dies.
type containers struct {
	pool    *dockertest.Pool
	program program
	// network is the container that sleeps, sleeper its supervisor.
	network string
	sleeper *supervisor
}

func openDocker(p program, ports []int) (machine, error) {
	if p.repository == "" {
		return nil, errors.New("docker: there is no image of it")
	}
	if _, err := exec.LookPath("docker"); err != nil {
		return nil, fmt.Errorf("docker: %w", err)
	}

	pool, err := dockertest.NewPool("")
	if err != nil {
		return nil, fmt.Errorf("docker: %w", err)
	}
	if err := pool.Client.Ping(); err != nil {
		return nil, fmt.Errorf("docker: %w", err)
	}
	if err := pull(pool, p); err != nil {
		return nil, fmt.Errorf("docker: %w", err)
	}

	c := &containers{pool: pool, program: p}
	options := &dockertest.RunOptions{
		Entrypoint:   []string{"sleep"},
		Cmd:          []string{"infinity"},
		PortBindings: map[docker.Port][]docker.PortBinding{},
	}

	for _, port := range ports {
		inside := docker.Port(strconv.Itoa(port) + "/tcp")
		options.ExposedPorts = append(options.ExposedPorts, string(inside))
		options.PortBindings[inside] = []docker.PortBinding{{HostIP: "127.0.0.1", HostPort: strconv.Itoa(port)}}
	}

	c.network, c.sleeper, err = c.run(options, "")
	if err != nil {
		return nil, err
	}
	return c, nil
}

// pull gets the program's image, unless it is here.
func pull(pool *dockertest.Pool, p program) error {
	_, err := pool.Client.InspectImage(p.repository + ":" + p.tag)
	if errors.Is(err, docker.ErrNoSuchImage) {
		err = pool.Client.PullImage(docker.PullImageOptions{Repository: p.repository, Tag: p.tag},
			docker.AuthConfiguration{})
	}
	if err != nil {
		return fmt.Errorf("image %s:%s: %w", p.repository, p.tag, err)
	}
	return nil
}

func (c *containers) start(command ...string) (*supervisor, error) {
	options := &dockertest.RunOptions{Entrypoint: command[:1], Cmd: command[1:], WorkingDir: "/tmp"}
	if c.program.unprivileged {
		options.User = c.program.repository
	}
	_, k, err := c.run(options, "container:"+c.network)
	return k, err
}

// bind is every address of the container: what comes in through a published port
// doesn't come to its loopback address.
func (c *containers) bind() string { return "*" }

func (c *containers) end() { c.sleeper.end() }

// removeContainer prints what a container printed and removes it once the
// container goes or the script's input ends.
const removeContainer = `
trap '' HUP INT PIPE TERM
exec 3<&0
docker -H "$1" logs --follow "$2" 3<&- & logs=$!
{ read -r _; docker -H "$1" kill "$2"; } <&3 >/dev/null 2>&1 & watch=$!
wait $logs
kill -9 $watch
docker -H "$1" rm --force --volumes "$2" >/dev/null
`

// run starts a container in the given network and a supervisor that removes it.
func (c *containers) run(o *dockertest.RunOptions, network string) (id string, k *supervisor, err error) {
	o.Repository, o.Tag = c.program.repository, c.program.tag
	container, err := c.pool.RunWithOptions(o, func(host *docker.HostConfig) {
		host.PublishAllPorts = false
		host.NetworkMode = network
	})
	if err != nil {
		return "", nil, fmt.Errorf("docker: run %s:%s: %w", o.Repository, o.Tag, err)
	}
	id = container.Container.ID
	if k, err = supervise(shell(removeContainer, c.pool.Client.Endpoint(), id)); err != nil {
		return "", nil, err
	}
	return id, k, nil
}
