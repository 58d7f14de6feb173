/** How far a JSON object or array has come, which arrives in pieces. Each piece is read once. */
export interface JsonProgress {
  push(text: string): void;
  /** All brackets are closed. The text is not parsed, so it may still be invalid. False for other values. */
  readonly isWhole: boolean;
}

export function createJsonProgress(): JsonProgress {
  let depth = 0;
  let state: 'before' | 'inside' | 'text' | 'escape' | 'after' | 'other' = 'before';

  function read(char: string): void {
    if (state === 'escape') state = 'text';
    else if (state === 'text') state = char === '"' ? 'inside' : char === '\\' ? 'escape' : 'text';
    else if (char === '{' || char === '[') {
      depth++;
      state = state === 'after' ? 'other' : 'inside';
    } else if (SPACES.has(char)) return;
    else if (state !== 'inside') state = 'other';
    else if (char === '"') state = 'text';
    else if ((char === '}' || char === ']') && --depth === 0) state = 'after';
  }

  return {
    push(text) {
      for (let i = 0; i < text.length && state !== 'other'; i++) read(text[i]!);
    },
    get isWhole() {
      return state === 'after';
    },
  };
}

/** Whether a text is an object or an array of which all brackets are closed. */
export function isWholeJson(text: string): boolean {
  const progress = createJsonProgress();
  progress.push(text);
  return progress.isWhole;
}

const SPACES: ReadonlySet<string> = new Set([' ', '\t', '\n', '\r']);
