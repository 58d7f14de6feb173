import { isObject } from '#wire';

type Json = Record<string, unknown>;

/**
 * Completes a whole completion, in place, with the members that OpenAI's API always sends, and that clients in strict
 * languages require. Many providers leave them out. A `system_fingerprint` that is null, which other clients require,
 * does not occur in that API.
 */
export function completeStrictly(body: Json): void {
  if (body['system_fingerprint'] === null) body['system_fingerprint'] = undefined;
  const { choices } = body;
  if (!Array.isArray(choices)) return;
  for (const choice of choices as readonly Json[]) {
    choice['logprobs'] ??= null;
    const { message } = choice;
    if (!isObject(message)) continue;
    const said = message as Json;
    said['content'] ??= null;
    said['refusal'] ??= null;
  }
}
