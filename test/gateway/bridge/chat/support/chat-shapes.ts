/** A chat reply as far as these tests look into it. */
export interface Completion {
  readonly id: string;
  readonly object: string;
  readonly model: string;
  readonly choices: readonly {
    readonly message: {
      readonly role: string;
      readonly content: string | null;
      readonly tool_calls?: readonly Called[];
    };
    readonly finish_reason: string | null;
  }[];
  readonly usage: Usage;
  readonly error?: {
    readonly message: string;
    readonly type: string;
    readonly code: number;
    readonly param: string | null;
  };
  readonly tollgate?: Extension;
}

export interface Called {
  readonly id: string;
  readonly type: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly cost: number;
  readonly cost_details: {
    readonly charged_usd: string;
    readonly receipt?: string;
    readonly children?: readonly {
      readonly id: string;
      readonly primitive: string;
      readonly service: string;
      readonly tool?: string;
      readonly cost: number;
      readonly receipt?: string;
    }[];
  };
}

export interface Extension {
  readonly task_id?: string;
  readonly context_id?: string;
  readonly state?: string;
  readonly note?: { readonly message: string; readonly type: string; readonly code: number };
  readonly messages?: readonly { readonly role: string; readonly [field: string]: unknown }[];
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly service: string;
    readonly tool: string;
    readonly state: string;
    readonly generation: string | null;
  }[];
}

export interface Chunk {
  readonly id: string;
  readonly object: string;
  readonly model: string;
  readonly choices: readonly {
    readonly delta: { readonly content?: string; readonly role?: string; readonly tool_calls?: readonly Called[] };
    readonly finish_reason: string | null;
  }[];
  readonly usage?: Usage;
  readonly error?: Completion['error'];
  readonly tollgate?: Extension;
}

export interface Streamed {
  readonly text: string;
  readonly chunks: readonly Chunk[];
  /** The words of all chunks. */
  readonly content: string;
  readonly last: Chunk;
  readonly comments: readonly string[];
  readonly done: boolean;
}

/** A stream to its end. */
export async function streamed(response: Response): Promise<Streamed> {
  const text = await response.text();
  const events = text.split('\n\n').filter((event) => event !== '');
  const chunks = events
    .filter((event) => event.startsWith('data: {'))
    .map((event) => JSON.parse(event.slice(6)) as Chunk);
  return {
    text,
    chunks,
    content: chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta.content ?? '')).join(''),
    last: chunks.at(-1)!,
    comments: events.filter((event) => event.startsWith(': ')).map((event) => event.slice(2)),
    done: events.at(-1) === 'data: [DONE]',
  };
}

export const whole = async (response: Response): Promise<Completion> => (await response.json()) as Completion;
