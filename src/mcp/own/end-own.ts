import { type Answer, errorText, type JsonRpcError, type RequestMessage, resultText } from '#wire';
import { modernStatusOf } from '../wire/revisions.ts';

/** A result of the gateway's own as JSON text, or the error in its place. */
export type OwnAnswer = { readonly result: string } | { readonly error: JsonRpcError };

/** Ends a request with an answer of the gateway's own. */
export function endOwn(answer: Answer, { idText }: RequestMessage, own: OwnAnswer, modern: boolean): void {
  if ('result' in own) answer.end(resultText(idText, own.result), 200);
  else answer.end(errorText(idText, own.error), modern ? modernStatusOf(own.error.code) : 200);
}
