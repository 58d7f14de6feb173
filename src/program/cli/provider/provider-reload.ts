import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, lstatSync, mkdirSync, readdirSync, realpathSync, rmdirSync, rmSync } from 'node:fs';
import { createServer, request as ask } from 'node:http';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { Log, ReloadReport } from '#proxy';
import { CliError, USAGE_EXIT, painter } from '../terminal.ts';
import { configPath, OWN_NAME } from '../command-line.ts';

/** The answer of a running proxy to a request for a reload. */
type ReloadAnswer = ReloadReport | { readonly problem: string };

export interface FileFlag {
  readonly config?: string;
}

const PATH = '/reload';
/** Timeout for the sign of a proxy that it is at work. The reload itself may take longer. */
const HEAD_MS = 5_000;

/** The provider's file that a command names. Throws CliError if it names none. */
export function providerFile({ config }: FileFlag): string {
  const file = configPath(config, 'provide', process.env);
  if (file !== null) return file;
  throw new CliError(
    `No file is named.\nGive it: ${OWN_NAME} provide --config provider.toml, or CONFIG_FILE_PATH=provider.toml`,
    { exitCode: USAGE_EXIT },
  );
}

/**
 * The folder of the sockets of this user's proxies. null if another user could reach it, and on Windows, which has no
 * such sockets.
 */
function socketFolder(): string | null {
  const user = process.getuid?.();
  if (user === undefined) return null;
  const folder = join(tmpdir(), `tollgate-provide-${user}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { mode, uid } = lstatSync(folder);
  return uid === user && (mode & 0o170077) === 0o040000 ? folder : null;
}

/**
 * The sockets of proxies with the same file begin with the same text. Only the folder's links are followed: an
 * orchestrator replaces a mounted file by a link to another place.
 */
function prefixOf(file: string): string {
  const path = resolve(file);
  const place = join(realpathSync(dirname(path)), basename(path));
  return `${createHash('sha256').update(place).digest('hex').slice(0, 24)}-`;
}

/**
 * Takes requests of `tollgate provide --reload` for this file, from programs of the same user. null if that is not
 * possible here: then only SIGHUP reloads.
 */
export async function listenForReload(
  file: string,
  reload: () => Promise<ReloadReport>,
  log: Log,
): Promise<{ close(): void } | null> {
  const server = createServer((request, response) => {
    const isReload = request.method === 'POST' && request.url === PATH;
    // The head goes out at once, so that the command can tell a proxy that is at work from one that hangs.
    response.writeHead(isReload ? 200 : 404, { 'content-type': 'application/json' }).flushHeaders();
    const answer = (body: ReloadAnswer) => void response.end(JSON.stringify(body));
    if (!isReload) return answer({ problem: `POST ${PATH}` });
    reload().then(answer, (error: unknown) =>
      answer({ problem: error instanceof Error ? error.message : String(error) }),
    );
  });
  let folder: string | null = null;
  const leave = () => {
    if (folder !== null) removeIfEmpty(folder);
  };
  try {
    folder = socketFolder();
    if (folder === null) return null;
    const path = join(folder, `${prefixOf(file)}${process.pid}.sock`);
    // A process with the same id may have been killed.
    rmSync(path, { force: true });
    server.listen(path);
    await once(server, 'listening');
    server.unref();
    return {
      close() {
        // Removes the socket at once.
        server.close();
        leave();
      },
    };
  } catch (error) {
    // Such as a path that is too long for a socket.
    leave();
    log.warn({ error }, 'this proxy takes no requests of --reload; a SIGHUP reloads it');
    return null;
  }
}

/** The folder stays if another proxy of this user still has its socket in it. */
function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // Another proxy uses it, or has removed it.
  }
}

/** `tollgate provide --reload`: has every running proxy with this file read it again, and prints what changed. */
export async function reloadProvider(flags: FileFlag): Promise<void> {
  const file = providerFile(flags);
  if (!existsSync(file)) throw new CliError(`There is no file ${file}.`);
  const folder = socketFolder();
  const answers: ReloadAnswer[] = [];
  if (folder !== null) {
    const prefix = prefixOf(file);
    for (const name of readdirSync(folder)) {
      if (!name.startsWith(prefix)) continue;
      const answer = await askSocket(join(folder, name));
      if (answer !== null) answers.push(answer);
    }
  }
  if (answers.length === 0)
    throw new CliError(
      `No proxy of this user runs with ${file}: there is nothing to reload.\n` +
        'A proxy that runs as another user, or in a container, reloads at a SIGHUP: kill -HUP <pid>, or systemctl reload.',
    );
  for (const answer of answers) {
    if ('problem' in answer) continue;
    process.stdout.write(`${show(answer)}\n`);
    if (answer.outcome === 'refused') process.exitCode = 1;
  }
  const failed = answers.find((answer) => 'problem' in answer);
  if (failed) throw new CliError(`Not reloaded, the old file stays in use.\n${failed.problem}`);
}

/** null if nobody listens there any more. The file of a proxy that was killed is removed. */
async function askSocket(socketPath: string): Promise<ReloadAnswer | null> {
  const signal = new AbortController();
  const timer = setTimeout(() => signal.abort(), HEAD_MS);
  const request = ask({ socketPath, path: PATH, method: 'POST', signal: signal.signal });
  const replied = once(request, 'response');
  request.end();
  try {
    const [response] = (await replied) as [NodeJS.ReadableStream];
    clearTimeout(timer);
    return JSON.parse((await buffer(response)).toString()) as ReloadAnswer;
  } catch (error) {
    clearTimeout(timer);
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ECONNREFUSED' || code === 'ENOENT') {
      rmSync(socketPath, { force: true });
      return null;
    }
    const pid = /-(\d+)\.sock$/.exec(socketPath)?.[1];
    return {
      problem: signal.signal.aborted
        ? `The proxy with the process id ${pid} does not answer: it is stopped or hangs. Start it again.`
        : `The proxy with the process id ${pid} ended before it answered. Start it again.`,
    };
  }
}

function show({ outcome, changes, restart, raised, problems }: ReloadReport): string {
  const paint = painter();
  const color = { '+': 'green', '~': 'yellow', '-': 'red' } as const;
  const lines = changes.map((line) => {
    const sign = line.slice(0, 1) as keyof typeof color;
    return `${paint(color[sign], sign)}${line.slice(1)}`;
  });
  if (lines.length === 0) lines.push('No service has changed.');
  if (outcome === 'waiting')
    lines.push(
      `${paint('yellow', '!')} the router is not connected, or has not answered yet: in force when it accepts; see the proxy's log`,
    );
  if (outcome === 'refused')
    lines.push(
      `${paint('red', '✗')} the router refused the services, so nothing changed:`,
      ...problems.map(({ key, wrong, right }) => `  ${key} ${wrong}; right is ${right}`),
    );
  for (const { service, until } of raised)
    lines.push(
      `${paint('yellow', '!')} ${service}: its price has more than doubled, so until ${until} calls need a max_cost, and others get 422`,
    );
  if (restart.length > 0) lines.push(`${paint('yellow', '!')} after a restart: ${restart.join(', ')}`);
  return lines.join('\n');
}
