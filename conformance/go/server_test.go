package conformance

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The public development key that the server uses when no key file is given.
const accountKey = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2n" +
	"Q9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

const readyWithin = 20 * time.Second

var (
	ready = regexp.MustCompile(`^cosmolabe \S+ ready on (http://\S+?)/?(\s|$)`)
	loud  = regexp.MustCompile(`"level":\s*"(WARN|ERROR)"|panicked at`)
)

// endpoint is where the server of this run listens.
var endpoint string

// TestMain runs the suite against one server in memory. What a healthy server does not log fails
// the run, even if every case passed.
func TestMain(m *testing.M) {
	os.Exit(runWithServer(m))
}

func runWithServer(m *testing.M) int {
	server, err := startServer()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	endpoint = server.endpoint
	code := m.Run()
	server.stop()
	if complaints := server.complaints(); len(complaints) > 0 {
		fmt.Fprintf(os.Stderr, "the server logged:\n%s\n", strings.Join(complaints, "\n"))
		return 1
	}
	return code
}

// server is one `cosmolabe serve` process.
type server struct {
	command  *exec.Cmd
	endpoint string
	log      []string
	// Closed when the log has come to its end; only then may it be read.
	logged chan struct{}
}

func startServer() (*server, error) {
	binary := os.Getenv("COSMOLABE_BIN")
	if binary == "" {
		binary = "../../target/release/cosmolabe"
	}
	command := exec.Command(binary, "serve", "--listen", "127.0.0.1:0", "--in-memory")
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	log, err := command.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("%w; set COSMOLABE_BIN", err)
	}
	s := &server{command: command, logged: make(chan struct{})}
	go s.follow(log)
	endpoints := make(chan string, 1)
	go announce(output, endpoints)
	select {
	case s.endpoint = <-endpoints:
	case <-time.After(readyWithin):
	}
	if s.endpoint == "" {
		s.stop()
		return nil, fmt.Errorf("the server did not get ready:\n%s", strings.Join(s.log, "\n"))
	}
	return s, nil
}

func (s *server) follow(log io.Reader) {
	defer close(s.logged)
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		s.log = append(s.log, lines.Text())
	}
}

// announce sends the endpoint that the output names; without one it only closes the channel. It
// reads on to the end, so that the server never waits for a reader.
func announce(output io.Reader, endpoints chan<- string) {
	defer close(endpoints)
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if match := ready.FindStringSubmatch(lines.Text()); match != nil {
			endpoints <- match[1]
		}
	}
}

func (s *server) stop() {
	_ = s.command.Process.Kill()
	<-s.logged
	_ = s.command.Wait()
}

// complaints are the lines of the log that a healthy run does not have.
func (s *server) complaints() []string {
	var found []string
	for _, line := range s.log {
		if loud.MatchString(line) {
			found = append(found, line)
		}
	}
	return found
}
