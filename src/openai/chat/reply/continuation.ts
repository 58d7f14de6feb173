import type { Offer } from '#catalog';
import { tokensOf } from '../request/prompt-size.ts';

/**
 * The text of a stream that was given to its client, so that another provider can go on with it after the first one
 * broke it off. Only text of one choice is continued: nobody can go on with half a tool call, a sound or a picture.
 */
export class Continuation {
  /** The text that the client has, over all attempts. */
  givenText = '';
  #pending = '';
  #isText = true;
  /** All that was heard and not yet given out is text. */
  #isPendingText = true;
  /** White space at the end of what was given. Providers refuse a beginning that ends with it. */
  #lead = '';

  /** Another attempt begins: what was heard and not given out is forgotten. */
  begin(): void {
    this.#pending = '';
    this.#isPendingText = true;
    this.#lead = this.givenText.slice(this.givenText.trimEnd().length);
  }

  /** Reads a chunk before it goes out. If it goes on with a text, it leaves out what the client has. */
  hear(choices: readonly Record<string, unknown>[]): void {
    for (const { delta: ofChoice, index } of choices) {
      const delta = ofChoice as Record<string, unknown>;
      const isContinued = this.givenText !== '';
      for (const [member, value] of Object.entries(delta)) {
        if (member === 'content' && typeof value === 'string') {
          const text = isContinued ? this.#withoutLead(value) : value;
          delta[member] = text;
          this.#pending += text;
          if (index !== 0) this.#isPendingText = false;
        } else if (member === 'role' && isContinued) delta[member] = undefined;
        else if (UNCONTINUED.has(member) && value) this.#isPendingText = false;
      }
    }
  }

  /** All that was heard was given out. */
  took(): void {
    this.#isText &&= this.#isPendingText;
    this.givenText += this.#pending;
    this.#pending = '';
  }

  /** Whether an offer takes the beginning of an answer, and there is one. */
  goesOnAt({ model }: Offer): boolean {
    return this.#isText && this.givenText.trim() !== '' && model?.prefill !== undefined;
  }

  /** The forwarded body with the given text as the beginning of its answer, in the form that the offer takes. */
  request(body: Record<string, unknown>, { model }: Offer): Record<string, unknown> {
    const begun = { role: 'assistant', content: this.givenText.trimEnd() };
    const messages = [
      ...(body['messages'] as unknown[]),
      model?.prefill === 'prefix' ? { ...begun, prefix: true } : begun,
    ];
    return model?.prefill === 'continue_final_message'
      ? { ...body, messages, continue_final_message: true, add_generation_prompt: false }
      : { ...body, messages };
  }

  /** The tokens that are left of a cap. */
  remaining(cap: number): number {
    return Math.max(1, cap - tokensOf(Buffer.byteLength(this.givenText)));
  }

  #withoutLead(text: string): string {
    let from = 0;
    while (from < text.length && this.#lead[from] === text[from]) from++;
    this.#lead = from === text.length ? this.#lead.slice(from) : '';
    return text.slice(from);
  }
}

const UNCONTINUED: ReadonlySet<string> = new Set(['tool_calls', 'function_call', 'audio', 'images', 'refusal']);
