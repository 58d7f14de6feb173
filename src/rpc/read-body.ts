import {
  elementsOf,
  GatewayError,
  NotUtf8,
  readJsonText,
  type JsonLimits,
  type JsonRpcError,
  RawJsonError,
} from '#wire';
import { messageFault } from '#gateway';
import { CODE } from './errors-rpc.ts';
import { type Entry, readEntry } from './entry.ts';

/** Maximum number of entries in one batch. */
export const BATCH_MAX = 50;

/**
 * One entry, a batch of 1 to BATCH_MAX entries, or a refused body, which is answered by a single error without an id.
 */
export type Body =
  | { readonly kind: 'single'; readonly entry: Entry }
  | { readonly kind: 'batch'; readonly entries: readonly Entry[] }
  | { readonly kind: 'refused'; readonly error: JsonRpcError };

/** Reads an untrusted body. Never rejects because of its content. */
export async function readBody(bytes: Buffer, limits: JsonLimits): Promise<Body> {
  let text: string;
  try {
    text = await readJsonText(bytes, limits);
  } catch (error) {
    if (error instanceof GatewayError)
      return refuse(error instanceof NotUtf8 ? CODE.parse : CODE.invalidRequest, error.message);
    throw error;
  }
  if (!/^[\t\n\r ]*\[/.test(text)) {
    const entry = readEntry(text);
    return entry === undefined ? noJson(text) : { kind: 'single', entry };
  }
  return readBatch(text);
}

function readBatch(text: string): Body {
  const entries: Entry[] = [];
  let end = text.indexOf('[') + 1;
  try {
    const elements = elementsOf(text, 0, BATCH_MAX + 1);
    if (elements.length > BATCH_MAX)
      return refuse(CODE.invalidRequest, `A batch has at most ${BATCH_MAX} entries: send the others in another one`);
    for (const element of elements) {
      const entry = readEntry(text.slice(element.start, element.end));
      if (entry === undefined) return noJson(text);
      entries.push(entry);
      end = element.end;
    }
  } catch (error) {
    if (error instanceof RawJsonError) return noJson(text);
    throw error;
  }
  if (!/^[\t\n\r ]*\][\t\n\r ]*$/.test(text.slice(end))) return noJson(text);
  return entries.length === 0 ? refuse(CODE.invalidRequest, 'The batch is empty') : { kind: 'batch', entries };
}

const refuse = (code: number, message: string): Body => ({ kind: 'refused', error: { code, message } });
const noJson = (text: string): Body => refuse(CODE.parse, messageFault(text).message);
