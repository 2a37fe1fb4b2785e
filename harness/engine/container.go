package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	dockercontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"plumbline/fixtures"
	"plumbline/fixtures/engines"
)

// runLabel is the label of every container of ours; its value is the run's id.
const runLabel = "plumbline.run"

// createTimeout bounds the making of a container, which is not yet its start: seconds at most.
const createTimeout = time.Minute

// container is an engine that runs on a Docker Engine.
type container struct {
	started
	docker *docker
	id     string
	copied chan struct{} // closed when its log has been read to the end
	// unsure says that the Docker Engine was asked for a container and has not said what became of it.
	unsure bool
}

// container starts the recipe's image.
func (o *order) container(ctx context.Context) (running, error) {
	recipe := o.recipe.Container
	d, err := connectDocker(ctx)
	if err != nil {
		return nil, o.fail(err, "%v", err)
	}
	image, found, err := o.image(ctx, d, recipe)
	if err != nil {
		return nil, err
	}
	o.values[engines.Port] = strconv.Itoa(recipe.Port.Value)
	mounts := o.mount(recipe)
	words, err := o.words(recipe.Arguments)
	if err != nil {
		return nil, err
	}
	if o.set.EnginePort != 0 && d.local() {
		if _, err := freePort(ctx, o.set.EnginePort); err != nil {
			return nil, o.fail(err, "%v", err)
		}
	}
	env := o.environment(recipe.Environment)
	c := &container{docker: d, copied: make(chan struct{}), started: started{
		kind: KindContainer, order: o, ended: make(chan struct{}),
		start: fixtures.EngineStart{Recipe: o.recipe.Name, Command: words, Environment: slices.Sorted(maps.Keys(env)), Log: LogName,
			Container: &fixtures.EngineContainer{Image: image, ImageID: found.ID, ImageDigests: found.RepoDigests,
				GPUs: recipe.GPUs.Value}},
	}}
	if err := c.launch(ctx, c.request(words, env, mounts)); err != nil {
		return nil, err
	}
	return c, nil
}

// mount puts the folder of the first model file into the container, where the recipe has a place for it, and lets {{model}}
// name it there.
func (o *order) mount(recipe *engines.Container) []mount.Mount {
	if recipe.Mount.Value == "" || len(o.set.ModelFile) == 0 {
		return nil
	}
	file := o.set.ModelFile[0]
	switch o.recipe.Model.Value {
	case engines.ModelFile:
		o.values[engines.Model] = path.Join(recipe.Mount.Value, filepath.Base(file))
	case engines.ModelFolder:
		o.values[engines.Model] = recipe.Mount.Value
	}
	return []mount.Mount{{Type: mount.TypeBind, Source: filepath.Dir(file), Target: recipe.Mount.Value,
		// An engine that has its own model keeps a store there.
		ReadOnly: o.recipe.Model.Value != engines.ModelOwn}}
}

func (c *container) request(words []string, env map[string]string, mounts []mount.Mount) testcontainers.ContainerRequest {
	recipe := c.order.recipe.Container
	port := strconv.Itoa(recipe.Port.Value) + "/tcp"
	published := network.PortBinding{HostIP: netip.MustParseAddr(c.docker.bind)}
	if p := c.order.set.EnginePort; p != 0 {
		published.HostPort = strconv.Itoa(p)
	}
	return testcontainers.ContainerRequest{
		Image: c.start.Container.Image, Cmd: words, Env: env, ExposedPorts: []string{port},
		Labels: map[string]string{runLabel: c.order.run.ID},
		HostConfigModifier: func(h *dockercontainer.HostConfig) {
			h.Mounts = mounts
			h.ShmSize = recipe.SharedMemory.Value
			h.PortBindings = network.PortMap{network.MustParsePort(port): {published}}
			if recipe.GPUs.Value {
				h.DeviceRequests = []dockercontainer.DeviceRequest{{Count: -1, Capabilities: [][]string{{"gpu"}}}}
			}
		},
	}
}

// launch makes and starts the container, its watchdog first. What is left of a failure is removed.
func (c *container) launch(ctx context.Context, req testcontainers.ContainerRequest) (err error) {
	if c.dog, err = startWatchdog(); err != nil {
		return c.order.fail(err, "%v", err)
	}
	begun := false
	defer func() {
		if err != nil && !begun {
			err = also(err, c.remove(context.WithoutCancel(ctx)))
		}
	}()
	err = errors.Join(c.dog.tell(tellDocker, c.docker.address), c.dog.tell(tellLabel, runLabel+"="+c.order.run.ID))
	if err != nil {
		return c.order.fail(err, "%v", err)
	}
	c.order.began = time.Now()
	// The Docker Engine goes on making a container whose asker has left, and nobody would learn its id.
	making, made := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	box, err := c.docker.provider.CreateContainer(making, req)
	c.unsure = making.Err() != nil
	made()
	if box != nil {
		c.id = box.GetContainerID()
		c.start.Container.ID = c.id
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return c.refused(err)
	}
	// Asked for before the start, the answer cannot be missed however soon the container ends.
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	next := c.docker.api.ContainerWait(lasting, c.id, client.ContainerWaitOptions{Condition: dockercontainer.WaitConditionNextExit})
	if _, err = c.docker.api.ContainerStart(ctx, c.id, client.ContainerStartOptions{}); err != nil {
		cancel()
		return c.refused(err)
	}
	begun = true
	go c.follow(lasting)
	go func() {
		defer cancel()
		c.live(lasting, next)
	}()
	if err := c.locate(ctx); err != nil {
		_, stopErr := c.Stop(context.WithoutCancel(ctx))
		return also(c.order.fail(err, "%v", err), stopErr)
	}
	return nil
}

// refused puts a refusal of the Docker Engine into words.
func (c *container) refused(err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "could not select device driver"):
		return c.order.fail(err, "its recipe asks for GPUs, and the Docker Engine has none to give: "+
			"install the NVIDIA Container Toolkit there, or choose an engine that runs without (%v)", err)
	case strings.Contains(text, "port is already allocated"), strings.Contains(text, "address already in use"):
		return c.order.fail(err, "port %d is taken: choose another with --engine-port, or leave it out for a free one (%v)",
			c.order.set.EnginePort, err)
	}
	return c.order.fail(err, "the container cannot be started: %v", err)
}

// follow copies the log from its first line until the container has ended.
func (c *container) follow(ctx context.Context) {
	defer close(c.copied)
	all := client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Follow: true}
	log, err := c.docker.api.ContainerLogs(ctx, c.id, all)
	if err != nil {
		fmt.Fprintf(c.order.log, "plumbline: the container's log cannot be read: %v\n", err)
		return
	}
	defer log.Close()
	_, _ = stdcopy.StdCopy(c.order.log, c.order.log, log)
}

// live waits for the container's end.
func (c *container) live(ctx context.Context, next client.ContainerWaitResult) {
	var exit fixtures.EngineExit
	select {
	case w := <-next.Result:
		code := int(w.StatusCode)
		exit.Code = &code
		if w.Error != nil {
			exit.Code, exit.Reason = nil, w.Error.Message
		}
	case err := <-next.Error:
		exit.Reason = fmt.Sprintf("the Docker Engine could not be asked: %v", err)
	}
	if state, err := c.docker.api.ContainerInspect(ctx, c.id, client.ContainerInspectOptions{}); err == nil && state.Container.State != nil {
		exit.OutOfMemory = state.Container.State.OOMKilled
	}
	select { // its last words belong to it; they come until the log is at its end
	case <-c.copied:
	case <-time.After(drain):
	}
	c.end(exit)
}

// locate learns the published port and the limits.
func (c *container) locate(ctx context.Context) error {
	found, err := c.docker.api.ContainerInspect(ctx, c.id, client.ContainerInspectOptions{})
	if err != nil {
		return fmt.Errorf("the container cannot be looked at: %w", err)
	}
	if h := found.Container.HostConfig; h != nil {
		about := c.start.Container
		about.MemoryLimitBytes, about.CPULimit, about.SharedMemoryBytes = h.Memory, float64(h.NanoCPUs)/1e9, h.ShmSize
	}
	port := ""
	if n := found.Container.NetworkSettings; n != nil {
		for inside, bindings := range n.Ports {
			if int(inside.Num()) == c.order.recipe.Container.Port.Value && len(bindings) > 0 {
				port = bindings[0].HostPort
			}
		}
	}
	if port == "" { // it has ended already; the wait for its readiness says so
		port = "1"
	}
	c.url = "http://" + net.JoinHostPort(c.docker.host, port)
	return nil
}

// Stop asks the container to end, has it killed when it has not within the grace, and removes it with its volumes.
func (c *container) Stop(ctx context.Context) (*fixtures.EngineExit, error) {
	if c.stopped {
		return &c.exit, nil
	}
	c.stopped = true
	c.stopping.Store(true)
	seconds := int(grace / time.Second)
	_, stopErr := c.docker.api.ContainerStop(ctx, c.id, client.ContainerStopOptions{Timeout: &seconds})
	if errdefs.IsNotFound(stopErr) {
		stopErr = nil
	}
	select {
	case <-c.ended:
	case <-ctx.Done():
		stopErr = errors.Join(stopErr, fmt.Errorf("stop the container %s: it has not ended: %w", c.id, ctx.Err()))
	}
	removed := c.remove(context.WithoutCancel(ctx))
	<-c.ended // nothing is waited for beyond the container's removal
	return &c.exit, errors.Join(stopErr, removed, c.close())
}

// removeTimeout bounds the removal of a container that is asked to be killed.
const removeTimeout = 20 * time.Second

// remove removes the container, and lets the watchdog go when nothing is left. One that nobody told the id of is found by
// its label.
func (c *container) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	ids := []string{c.id}
	if c.id == "" {
		var err error
		if ids, err = labelled(ctx, c.docker.api, runLabel+"="+c.order.run.ID); err != nil {
			return fmt.Errorf("look for a container of this run: %w", err)
		}
	}
	for _, id := range ids {
		_, err := c.docker.api.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if err != nil && !errdefs.IsNotFound(err) {
			// The watchdog stays, and tries again when this program ends.
			return fmt.Errorf("remove the container %s: %w", id, err)
		}
	}
	if c.unsure && len(ids) == 0 {
		return c.docker.provider.Close() // it may be made yet: the watchdog looks for it when this program ends
	}
	return errors.Join(c.dog.release(), c.docker.provider.Close())
}

// labelled are the ids of the containers with a label, running or not.
func labelled(ctx context.Context, docker client.APIClient, label string) ([]string, error) {
	found, err := docker.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", label)})
	ids := make([]string, len(found.Items))
	for i, c := range found.Items {
		ids[i] = c.ID
	}
	return ids, err
}
