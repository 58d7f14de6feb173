import { ApiError } from '../../../api/api-error.ts';

/** An error, as it is kept beside a conversation. */
export interface CallFault {
  readonly message: string;
  readonly type: string;
  readonly status: number;
  readonly requestId: string | null;
  /** Whose budget refused the call; null or absent where none did. */
  readonly budget?: string | null;
}

/** A step that is told of while an answer is made: a tool that the gateway calls, or words of a tool or agent. */
export interface Step {
  readonly id: string;
  readonly text: string;
  readonly service: string | null;
  readonly state: 'running' | 'done' | 'failed';
  /** The call that it was, once it is over. */
  readonly callId: string | null;
}

export type TaskState = 'working' | 'completed' | 'input-required' | 'canceled' | 'failed';

/** An answer to a request of the chat API, also while it comes. */
export interface Answer {
  readonly running: boolean;
  /** Of a tool or an agent one piece for each part; of a model one piece with all of the text. */
  readonly pieces: readonly string[];
  /** Length of all pieces. */
  readonly length: number;
  readonly thinking: string;
  /** Data URLs of pictures. */
  readonly images: readonly string[];
  readonly steps: readonly Step[];
  readonly callId: string | null;
  readonly provider: string | null;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  readonly firstAt: number | null;
  readonly endedAt: number | null;
  /** USD, with all calls under it. null while it is not known. */
  readonly cost: number | null;
  readonly tokens: number | null;
  readonly fault: CallFault | null;
  /** The reader stopped it. */
  readonly stopped: boolean;
  /** Why the answer is not whole. */
  readonly note: string | null;
  readonly task: { readonly id: string | null; readonly context: string | null; readonly state: TaskState } | null;
}

export const beginAnswer = (): Answer => ({
  running: true,
  pieces: [],
  length: 0,
  thinking: '',
  images: [],
  steps: [],
  callId: null,
  provider: null,
  startedAt: Date.now(),
  firstAt: null,
  endedAt: null,
  cost: null,
  tokens: null,
  fault: null,
  stopped: false,
  note: null,
  task: null,
});

export const faultOf = (error: unknown): CallFault =>
  error instanceof ApiError
    ? {
        message: error.message,
        type: error.type,
        status: error.status,
        requestId: error.requestId,
        budget: error.budget,
      }
    : {
        message: error instanceof Error ? error.message : String(error),
        type: 'broken',
        status: 0,
        requestId: null,
      };

/** The fault as an error again, for what explains errors. */
export const errorOfFault = ({ message, ...facts }: CallFault): ApiError => new ApiError(message, facts);
