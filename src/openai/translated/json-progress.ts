/** How far a JSON object or array has come, which arrives in pieces. Each piece is read once. */
export interface JsonProgress {
  push(text: string): void;
  /** All brackets are closed. The text is not parsed, so it may still be invalid. False for other values. */
  readonly isWhole: boolean;
}

export function createJsonProgress(): JsonProgress {
  return new Progress();
}

class Progress implements JsonProgress {
  #depth = 0;
  #state: 'before' | 'inside' | 'text' | 'escape' | 'after' | 'other' = 'before';

  get isWhole(): boolean {
    return this.#state === 'after';
  }

  push(text: string): void {
    for (let i = 0; i < text.length && this.#state !== 'other'; i++) this.#read(text[i]!);
  }

  #read(char: string): void {
    if (this.#state === 'escape') this.#state = 'text';
    else if (this.#state === 'text') this.#state = char === '"' ? 'inside' : char === '\\' ? 'escape' : 'text';
    else if (char === '{' || char === '[') {
      this.#depth++;
      this.#state = this.#state === 'after' ? 'other' : 'inside';
    } else if (SPACES.has(char)) return;
    else if (this.#state !== 'inside') this.#state = 'other';
    else if (char === '"') this.#state = 'text';
    else if ((char === '}' || char === ']') && --this.#depth === 0) this.#state = 'after';
  }
}

/** Whether a text is an object or an array of which all brackets are closed. */
export function isWholeJson(text: string): boolean {
  const progress = createJsonProgress();
  progress.push(text);
  return progress.isWhole;
}

const SPACES: ReadonlySet<string> = new Set([' ', '\t', '\n', '\r']);
