import { jsonText } from './snippet.ts';

/** Placeholder in a command's JSON: an id that changes every second. */
const NEW_ID = '⟨new id⟩';
/** Placeholder in a command's JSON: the shell variable ID. */
const ID = '⟨ID⟩';

/** The shell code for both placeholders, inside of a single-quoted text. */
const FILLED = { [NEW_ID]: "'$(date +%s)'", [ID]: "'$ID'" } as const;

interface CurlOptions {
  /** Lines before the body, such as `-o image.png`. */
  readonly more?: readonly string[];
  /** For a command in a pipe: without curl's progress bar. */
  readonly silent?: boolean;
}

/** A command that sends JSON with the key in $KEY. Apostrophes in the JSON are escaped for the shell. */
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

/** A message to an agent over JSON-RPC. Its id changes every second, because the same id would be the same message. */
export const sendMessage = (url: string, text: string): string =>
  curl(url, {
    jsonrpc: '2.0',
    id: 1,
    method: 'message/send',
    params: { message: { messageId: `m-${NEW_ID}`, role: 'user', parts: [{ kind: 'text', text }] } },
  });

/** The same over HTTP+JSON. */
export const sendByHttp = (url: string, text: string): string =>
  curl(`${url}/message:send`, { message: { messageId: `m-${NEW_ID}`, role: 'ROLE_USER', parts: [{ text }] } });

/** Queues a video and downloads its file. The first answer is printed, and its id is used in the second command. */
export const queueVideo = (
  base: string,
  body: unknown,
): string => `ID=$(${curl(`${base}/api/v1/video/queue`, body, { silent: true })} \\
  | tee /dev/stderr | sed 's/.*"id":"\\([^"]*\\)".*/\\1/')

# A video takes minutes. Repeat this until video.mp4 is one:
${curl(`${base}/api/v1/video/retrieve`, { task_id: ID, wait_for_final: true }, { more: ['-o video.mp4'] })}`;
