import { connect, type Socket } from 'node:net';

/** An HTTP answer, read from its bytes. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const NO_BODY: ReadonlySet<number> = new Set([204, 304]);

/**
 * Opens a connection to an origin such as `http://127.0.0.1:8402`. Errors close it and aren't thrown. `localAddress`:
 * the address that it comes from.
 */
export async function openSocket(origin: string, localAddress?: string): Promise<Socket> {
  const { hostname, port } = new URL(origin);
  const from = localAddress === undefined ? {} : { localAddress };
  const socket = connect({ port: Number(port), host: hostname, noDelay: true, ...from });
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  socket.on('error', () => {});
  return socket;
}

/**
 * Sends these bytes and reads the first answer. Reads to the end of the body if the body has a length, or if there is
 * no body. Otherwise reads until the server closes.
 */
export async function sendRaw(origin: string, bytes: string | Uint8Array): Promise<RawAnswer> {
  const socket = await openSocket(origin);
  const answer = readAnswer(socket);
  socket.write(bytes);
  try {
    return await answer;
  } finally {
    socket.destroy();
  }
}

/** Reads the next answer on a socket. Rejects if the socket closes before. */
export function readAnswer(socket: Socket): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    let bytes = Buffer.alloc(0);
    const whole = (closed: boolean): RawAnswer | null => {
      const end = bytes.indexOf('\r\n\r\n');
      if (end === -1) return null;
      const [line = '', ...fields] = bytes.toString('latin1', 0, end).split('\r\n');
      const headers = Object.fromEntries(
        fields.map((field) => [
          field.slice(0, field.indexOf(':')).toLowerCase(),
          field.slice(field.indexOf(':') + 1).trim(),
        ]),
      );
      const rest = bytes.subarray(end + 4);
      const status = Number(line.split(' ')[1]);
      const length = NO_BODY.has(status) ? 0 : headers['content-length'];
      if (!closed && (length === undefined || rest.length < Number(length))) return null;
      return { status, headers, body: rest.toString('utf8') };
    };
    const look = (closed: boolean) => {
      const answer = whole(closed);
      if (answer) resolve(answer);
      else if (closed) reject(new Error(`the connection closed without an answer; ${bytes.length} bytes came`));
    };
    socket.on('data', (part: Buffer) => {
      bytes = Buffer.concat([bytes, part]);
      look(false);
    });
    socket.once('close', () => look(true));
  });
}
