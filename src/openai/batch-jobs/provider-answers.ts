import { loadStatements, type Database } from '#store';
import { OWN_TURN_BYTES } from '#wire';
import { readElsewhere } from '#wire/replies';
import { readLine, type SaidLine } from './read-answer-worker.ts';
import { oneLine, type Scrub } from '#security';
import type { Batch } from './batch.ts';
import type { Claim } from './claim.ts';
import { asLong, linesOf, type LongLine } from './input-lines.ts';
import type { ProviderAnswer } from './provider-api.ts';
import type { SealedContent } from './sealed-content.ts';

const SQL = loadStatements(import.meta.url, './sql/provider-batches.sql', ['answerOfLine', 'putAnswer']);

interface AnswersDeps {
  readonly database: Pick<Database, 'query'>;
  readonly content: SealedContent;
  readonly limits: { readonly replyBytesMax: number; readonly resultBytesMax: number };
}

interface AnswersOf {
  readonly batch: Batch;
  readonly id: string;
  readonly claim: Claim;
  readonly scrub: Scrub;
}

const OK = 200;
/** The code of an answer that was not read, because it, or its file, has too many bytes. */
export const TOO_LARGE = 'provider_answer_too_large';
/** The code of an answer that its provider did not give in time, although it may have done the work. */
export const LATE = 'provider_late';
/** Bytes of a line of answers beside the answer. */
const FRAME_BYTES = 4_096;
const TEXT_MAX = 300;

/**
 * Stores the answers in a provider's file of results, each for the line that its `custom_id` names. What is no answer
 * to a line of this provider batch that waits for one changes nothing: not the name of another line, nor a second
 * answer.
 */
export async function readAnswers(
  { database, content, limits }: AnswersDeps,
  { batch, id, claim, scrub }: AnswersOf,
  pieces: AsyncIterable<Buffer>,
): Promise<void> {
  const bytesMax = limits.replyBytesMax + FRAME_BYTES;
  let bytes = 0;
  for await (const line of linesOf(pieces, bytesMax)) {
    if (!claim.goesOn) return;
    bytes += line.bytes === null ? line.size : line.bytes.byteLength;
    const read =
      line.bytes === null
        ? tooLarge(
            line,
            `its line has ${line.size} bytes, and at most ${bytesMax} are read (upstream.reply_bytes_max, and ${FRAME_BYTES} for the line)`,
          )
        : bytes > limits.resultBytesMax
          ? tooLarge(asLong(line.bytes), noRoom(limits.resultBytesMax))
          : await readAnswer(line.bytes, batch.account, scrub);
    if (read === null) continue;
    // What the provider had not begun when the batch was cancelled has no result.
    const answer: ProviderAnswer = 'error' in read.answer && claim.isCancelled ? { dropped: true } : read.answer;
    const sealed = await content.seal(batch.account, Buffer.from(JSON.stringify(answer)));
    await database.query(SQL.putAnswer, [id, read.callId, sealed, claim.id]);
  }
}

export const noRoom = (bytesMax: number): string =>
  `the provider's file with the results has more than ${bytesMax} bytes, and at most ${bytesMax} are read (batches.account_bytes_max)`;

/**
 * The answer of a line that is not read. Its provider has done the work, so it is charged by the usage at its end.
 * Providers begin their lines with the name; null without one there.
 */
function tooLarge({ start, end }: LongLine, why: string): { callId: string; answer: ProviderAnswer } | null {
  const head = start.toString();
  const callId = /"custom_id"\s*:\s*"([^"\\]+)"/.exec(head)?.[1];
  if (callId === undefined) return null;
  const status = Number(/"status_code"\s*:\s*(\d{3})\b/.exec(head)?.[1] ?? OK);
  return { callId, answer: { status, body: end.toString(), tooLarge: `The provider's answer is too large: ${why}` } };
}

/** Reads a line of a provider's file; null if it has another form. A large one is read in a thread. */
async function readAnswer(
  bytes: Buffer,
  account: string,
  scrub: Scrub,
): Promise<{ callId: string; answer: ProviderAnswer } | null> {
  let line: SaidLine;
  try {
    line = bytes.length <= OWN_TURN_BYTES ? readLine(bytes) : await readLineElsewhere(bytes, account);
  } catch {
    return null;
  }
  const { customId: callId, response, error } = line;
  if (typeof callId !== 'string') return null;
  if (response !== null) {
    const { status, body } = response;
    return isStatus(status) && body !== null ? { callId, answer: { status, body } } : null;
  }
  if (error === null) return null;
  const text = (value: unknown, otherwise: string) =>
    typeof value === 'string' && value !== '' ? oneLine(scrub(value)).slice(0, TEXT_MAX) : otherwise;
  const code = text(error.code, 'provider_error');
  return { callId, answer: { error: { code, message: text(error.message, 'The provider could not answer') } } };
}

const WORKER = new URL('./read-answer-worker.ts', import.meta.url);

function readLineElsewhere(bytes: Buffer, account: string): Promise<SaidLine> {
  const { buffer } = Uint8Array.from(bytes);
  return readElsewhere(account, WORKER, buffer, [buffer]) as Promise<SaidLine>;
}

const isStatus = (status: unknown): status is number =>
  typeof status === 'number' &&
  Number.isInteger(status) &&
  ((status >= 200 && status < 300) || (status >= 400 && status < 600));

export async function answerOfLine(
  { database, content }: Pick<AnswersDeps, 'database' | 'content'>,
  { id, account }: Batch,
  n: number,
): Promise<{ readonly offer: string; readonly answer: ProviderAnswer } | null> {
  const [row] = await database.query(SQL.answerOfLine, [id, n]);
  if (row === undefined) return null;
  const text = (await content.open(account, row['content'] as Uint8Array)).toString();
  return { offer: row['offer'] as string, answer: JSON.parse(text) as ProviderAnswer };
}
