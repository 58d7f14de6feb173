import { createHash } from 'node:crypto';
import type { GatewayError } from '#errors';
import { ownTurn } from '#wire';
import type { MicroUsd } from '#billing/amounts';
import type { Batch, BatchFault, LineCalls, LineError } from './batch.ts';
import { type Claim, NotNow } from './claim.ts';
import type { StoredFiles } from './file.ts';
import { linesOf } from './input-lines.ts';
import { type LineLimits, readLine } from './line-request.ts';
import { UnreadableContent } from './sealed-content.ts';

interface CheckDeps {
  readonly files: Pick<StoredFiles, 'read'>;
  readonly calls: Pick<LineCalls, 'measure'>;
  readonly limits: LineLimits;
}

interface CheckedLines {
  readonly total: number;
  /** The most that all of them may cost. */
  readonly most: MicroUsd;
  /** The model of all of them; null if they name several. */
  readonly model: string | null;
}

/** Faults of the file that a batch shows, and those of bodies; and characters of their messages. */
const FAULTS_MAX = 100;
const FAULT_CHARS_MAX = 8 * 1024;
const TEMPORARY = 500;
const DIGEST_BYTES = 16;

/**
 * Checks every line of a batch as its route would, before anything is locked or called. A body that its route refuses
 * is the fault of its line alone, which gets that answer when the lines are called. Resolves with the faults if the
 * file is wrong or no line can be called, or with null if the claim ended or the batch was cancelled meanwhile. Rejects
 * with NotNow.
 */
export async function checkLines(
  { files, calls, limits }: CheckDeps,
  batch: Batch,
  claim: Claim,
): Promise<CheckedLines | readonly BatchFault[] | null> {
  const faults: BatchFault[] = [];
  const refused: BatchFault[] = [];
  // Digests, because the texts of 50,000 lines may be large.
  const ids = new Set<string>();
  const models = new Set<string>();
  let total = 0;
  let called = 0;
  let most = 0n;
  const { inputFile: id, account, endpoint } = batch;
  try {
    for await (const { n, bytes } of linesOf(files.read(ofInput(id, account)), limits.lineBytesMax)) {
      if (!claim.goesOn || claim.isCancelled) return null;
      total += 1;
      if (total > limits.linesMax) {
        const message = `The file has more than ${limits.linesMax} lines (batches.lines_max)`;
        faults.push({ code: 'too_many_lines', message, line: n, param: null });
      }
      if (isFull(faults) || total > limits.linesMax) break;
      const line = await readLine(bytes, endpoint, limits);
      if ('code' in line) {
        faults.push({ ...line, line: n });
        continue;
      }
      const digest = createHash('sha256').update(line.customId).digest('base64').slice(0, DIGEST_BYTES);
      if (ids.has(digest)) {
        const message = 'Another line has the same custom_id';
        faults.push({ code: 'duplicate_custom_id', message, line: n, param: 'custom_id' });
      }
      ids.add(digest);
      // Checks of all batches take turns with calls whose clients wait.
      await ownTurn();
      const wrong = ({ code, message, param }: LineError) => {
        if (!isFull(refused))
          refused.push({ code, message, line: n, param: param === null ? 'body' : `body.${param}` });
      };
      if (line.refusal !== null) {
        wrong(line.refusal);
        continue;
      }
      const measured = await calls.measure(batch, line.body);
      if ('refused' in measured) {
        if (measured.refused.status >= TEMPORARY) throw new NotNow(measured.error.message);
        wrong(measured.error);
        continue;
      }
      called += 1;
      most += measured.most;
      models.add(measured.model);
    }
  } catch (error) {
    if (!(error instanceof UnreadableContent)) throw error;
    faults.push(unreadable(error));
  }
  if (total === 0 && faults.length === 0)
    faults.push({ code: 'empty_file', message: 'The file has no lines', line: null, param: 'input_file_id' });
  if (faults.length > 0 || called === 0)
    return [...faults, ...refused].sort((one, other) => (one.line ?? 0) - (other.line ?? 0));
  const [model = null] = models;
  return { total, most, model: models.size === 1 ? model : null };
}

const isFull = (faults: readonly BatchFault[]): boolean =>
  faults.length >= FAULTS_MAX || faults.reduce((sum, { message }) => sum + message.length, 0) >= FAULT_CHARS_MAX;

export const ofInput = (id: string, account: string) => ({ id, account, batch: null, results: null });

export const unreadable = ({ message }: UnreadableContent): BatchFault => ({
  code: 'unreadable_file',
  message,
  line: null,
  param: 'input_file_id',
});

export const faultOf = ({ code, message, param }: GatewayError): BatchFault => ({
  code,
  message,
  line: null,
  param: param ?? null,
});
