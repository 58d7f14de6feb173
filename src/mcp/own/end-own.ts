import { type Answer, errorText, type JsonRpcError, type RequestMessage, resultText } from '#wire';
import { modernStatusOf } from '../wire/revisions.ts';

/** A result that the gateway itself writes, as JSON text, or an error instead. */
export type OwnAnswer = { readonly result: string } | { readonly error: JsonRpcError };

/** Ends a request with an answer that the gateway itself writes. */
export function endOwn(answer: Answer, { idText }: RequestMessage, own: OwnAnswer, modern: boolean): void {
  if ('result' in own) answer.end(resultText(idText, own.result), 200);
  else answer.end(errorText(idText, own.error), modern ? modernStatusOf(own.error.code) : 200);
}
