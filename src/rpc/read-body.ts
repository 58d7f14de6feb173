import { isUtf8 } from 'node:buffer';
import { elementsOf, GatewayError, readJsonText, type JsonLimits, type JsonRpcError, RawJsonError } from '#gateway';
import { CODE } from './errors-rpc.ts';
import { type Entry, readEntry } from './entry.ts';

/** Entries in one batch. */
export const BATCH_MAX = 50;

/** What a body is: one entry, a batch of 1 to BATCH_MAX, or what is answered by a single error without an id. */
export type Body =
  | { readonly kind: 'single'; readonly entry: Entry }
  | { readonly kind: 'batch'; readonly entries: readonly Entry[] }
  | { readonly kind: 'refused'; readonly error: JsonRpcError };

/** Reads the bytes of a stranger. Never rejects. */
export async function readBody(bytes: Buffer, limits: JsonLimits): Promise<Body> {
  if (!isUtf8(bytes)) return refuse(CODE.parse, 'The body is not valid UTF-8');
  let text: string;
  try {
    text = await readJsonText(bytes, limits);
  } catch (error) {
    if (error instanceof GatewayError) return refuse(CODE.invalidRequest, error.message);
    throw error;
  }
  if (!/^[\t\n\r ]*\[/.test(text)) {
    const entry = readEntry(text);
    return entry === undefined ? NO_JSON : { kind: 'single', entry };
  }
  return readBatch(text);
}

function readBatch(text: string): Body {
  const entries: Entry[] = [];
  let end = text.indexOf('[') + 1;
  try {
    const elements = elementsOf(text, 0, BATCH_MAX + 1);
    if (elements.length > BATCH_MAX) return refuse(CODE.invalidRequest, `A batch has at most ${BATCH_MAX} entries: send the others in another one`);
    for (const element of elements) {
      const entry = readEntry(text.slice(element.start, element.end));
      if (entry === undefined) return NO_JSON;
      entries.push(entry);
      end = element.end;
    }
  } catch (error) {
    if (error instanceof RawJsonError) return NO_JSON;
    throw error;
  }
  if (!/^[\t\n\r ]*\][\t\n\r ]*$/.test(text.slice(end))) return NO_JSON;
  return entries.length === 0 ? refuse(CODE.invalidRequest, 'The batch is empty') : { kind: 'batch', entries };
}

const refuse = (code: number, message: string): Body => ({ kind: 'refused', error: { code, message } });
const NO_JSON = refuse(CODE.parse, 'The body is not valid JSON: POST a JSON-RPC 2.0 request, or an array of them');
