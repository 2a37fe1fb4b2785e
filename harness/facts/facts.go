// Package facts reads what can be read of the machine that the suite runs on: processor, memory, accelerators and
// their drivers, operating system, the drive of a model and the digests of model files. What cannot be read is left
// out with a reason; it never guesses, and it reads no engine and no clock of a measurement.
package facts

import (
	"context"
	"net"
	"net/url"
	"slices"
	"strings"

	"plumbline/fixtures"
)

// Options say what to look at.
type Options struct {
	// EngineURL is the engine's base address; facts describe its machine only when it is a loopback address.
	EngineURL string
	// ModelFiles are model files that the operator named, as absolute paths.
	ModelFiles []string
	// ModelPath is what the engine says that it loaded; "" when it does not say.
	ModelPath string
	// SkipModelHash leaves all model files unread.
	SkipModelHash bool
	// DigestCache, when not "", is a file that keeps digests from one run to the next (see DigestCachePath). A digest in
	// it is taken only for a file whose device, inode, size and times are those it had when it was read.
	DigestCache string
	// Glance leaves the content of model files unread but for a digest that the cache holds already. A file that can be
	// opened then has NotReadYet in the place of its digest.
	Glance bool
	// Progress, when not nil, is told of each file how many of its bytes have been read, from one goroutine.
	Progress func(path string, done, total int64)
}

// NotReadYet stands in the place of a digest that only a reading of the whole file can give.
const NotReadYet = "not read yet"

// Host reads the facts of this machine. It returns early, with reasons, when ctx ends.
func Host(ctx context.Context, opts Options) fixtures.HostFacts {
	return newMachine("/", runCommand).host(ctx, opts)
}

// machine is where the facts are read: a file system root and a way to run commands.
type machine struct {
	root string
	run  runner
}

func newMachine(root string, run runner) *machine { return &machine{root: root, run: run} }

// reasons collects why facts are missing, by field name.
type reasons map[string]string

func (r reasons) add(field, why string) {
	if have := r[field]; have != "" {
		why = have + "; " + why
	}
	r[field] = why
}

func (m *machine) host(ctx context.Context, opts Options) fixtures.HostFacts {
	why := reasons{}
	f := fixtures.HostFacts{
		EngineHere: Loopback(opts.EngineURL),
		GPUs:       []fixtures.GPU{},
		Drivers:    []fixtures.NameVersion{},
		Runtime:    []fixtures.NameVersion{},
		ModelFiles: []fixtures.ModelFile{},
	}
	f.CPU, f.LogicalCPUs = m.cpu(why)
	f.CPUQuota = m.cpuQuota()
	f.RAMBytes, f.RAMLimitBytes = m.ram(why)
	f.OSName, f.OSVersion = m.system(why)
	f.Kernel = m.kernel(why)
	m.accelerators(ctx, &f, why)
	files := m.chooseFiles(opts, f.EngineHere, why)
	f.Storage = m.storage(readable(files), why)
	identified := m.hash(ctx, files, opts, why)
	f.ModelFiles = append(f.ModelFiles, identified...)
	unread := func(file fixtures.ModelFile) bool { return file.SHA256 == "" }
	f.NamedFileUnread = !opts.SkipModelHash && len(files) > 0 && (len(identified) == 0 || slices.ContainsFunc(identified, unread))
	f.Reasons = why
	return f
}

// Loopback reports whether an address leads to this machine: the name localhost or a loopback address. A port that is
// forwarded from there to another machine cannot be told from it.
func Loopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") { // RFC 6761
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
