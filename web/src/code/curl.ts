import { jsonText } from './snippet.ts';

/** In the JSON of a command: an id that is another one each second. */
const NEW_ID = '⟨new id⟩';
/** In the JSON of a command: the variable ID of the shell. */
const ID = '⟨ID⟩';

/** Both as a shell fills them into a text between single quotes. */
const FILLED = { [NEW_ID]: "'$(date +%s)'", [ID]: "'$ID'" } as const;

interface CurlOptions {
  /** Lines before the body, such as `-o image.png`. */
  readonly more?: readonly string[];
  /** The command is one in a pipe: no bar of progress. */
  readonly silent?: boolean;
}

/** A command that sends JSON with the key in KEY. An apostrophe in the JSON is written so that a shell passes it on. */
export function curl(url: string, body: unknown, { more = [], silent = false }: CurlOptions = {}): string {
  let json = jsonText(body).replaceAll("'", String.raw`'\''`);
  for (const [mark, filled] of Object.entries(FILLED)) json = json.replaceAll(mark, filled);
  return [
    `curl ${silent ? '-s ' : ''}${url}`,
    `  -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json'`,
    ...more.map((line) => `  ${line}`),
    `  -d '${json}'`,
  ].join(' \\\n');
}

/** A message to an agent in JSON-RPC. Its id is another one each second: the same id is the same message. */
export const sendMessage = (url: string, text: string): string =>
  curl(url, {
    jsonrpc: '2.0',
    id: 1,
    method: 'message/send',
    params: { message: { messageId: `m-${NEW_ID}`, role: 'user', parts: [{ kind: 'text', text }] } },
  });

/** The same by HTTP and JSON. */
export const sendByHttp = (url: string, text: string): string =>
  curl(`${url}/message:send`, { message: { messageId: `m-${NEW_ID}`, role: 'ROLE_USER', parts: [{ text }] } });

/** Queues a video and fetches its file. The first answer is shown, and its id is kept for the second command. */
export const queueVideo = (
  base: string,
  body: unknown,
): string => `ID=$(${curl(`${base}/api/v1/video/queue`, body, { silent: true })} \\
  | tee /dev/stderr | sed 's/.*"id":"\\([^"]*\\)".*/\\1/')

# A video takes minutes. Repeat this until video.mp4 is one:
${curl(`${base}/api/v1/video/retrieve`, { task_id: ID, wait_for_final: true }, { more: ['-o video.mp4'] })}`;
