/** A prompt that is longer than a model takes. All members are in tokens. */
interface ContextExceeded {
  /** null if the provider does not say. */
  readonly prompt: number | null;
  /** The requested length of the answer; null if the provider does not say. */
  readonly answer: number | null;
  readonly maximum: number | null;
}

/** Words by which services refuse a prompt that is too long. */
const WORDS =
  /maximum context length|context_length_exceeded|exceeds? the (?:model'?s? )?(?:maximum )?context|longer than the maximum model length|exceeds the available context size|prompt is too long|context window|input is too long/i;
const MAXIMUM =
  /(?:context (?:length|window|size|limit)(?: of the model)?(?: is|:| of)?|> ?|maximum model length of|available context size \()\s*\(?([\d,]+)/i;
const PROMPT =
  /([\d,]+) in the (?:messages|prompt|input)|([\d,]+) (?:input|prompt) tokens|prompt (?:is too long|contains(?: at least)?|has)[^\d]{0,20}([\d,]+)|request \(([\d,]+) tokens\)|resulted in ([\d,]+)|requested ([\d,]+) tokens(?! \()/i;
const ANSWER =
  /([\d,]+) (?:in|for) the (?:completion|output)|([\d,]+) output tokens|(?:max_tokens|max_completion_tokens)['"`]? is too large: ([\d,]+)/i;

/** The numbers in the refusal of a prompt that is too long; null for another refusal. */
export function contextExceeded(message: string): ContextExceeded | null {
  if (!WORDS.test(message)) return null;
  return { prompt: found(PROMPT, message), answer: found(ANSWER, message), maximum: found(MAXIMUM, message) };
}

function found(pattern: RegExp, message: string): number | null {
  const digits = pattern
    .exec(message)
    ?.slice(1)
    .find((group) => group !== undefined);
  return digits === undefined ? null : Number(digits.replaceAll(',', ''));
}
