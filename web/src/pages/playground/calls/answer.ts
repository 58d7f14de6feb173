import { ApiError } from '../../../api/api-error.ts';

/** An error in a form that can be stored with a conversation. */
export interface CallFault {
  readonly message: string;
  readonly type: string;
  readonly status: number;
  readonly requestId: string | null;
  /** Whose budget refused the call. null or absent if it was not a budget. */
  readonly budget?: string | null;
}

/**
 * A step that is reported while an answer is made: a tool that the gateway calls, or a message of a tool or agent about
 * its work.
 */
export interface Step {
  readonly id: string;
  readonly text: string;
  readonly service: string | null;
  readonly state: 'running' | 'done' | 'failed';
  /** The id of the step's call, after it has ended. */
  readonly callId: string | null;
}

export type TaskState = 'working' | 'completed' | 'input-required' | 'canceled' | 'failed';

/** An answer to a request of the chat API, complete or still incomplete. */
export interface Answer {
  readonly running: boolean;
  /** For a tool or an agent, one piece per part. For a model, one piece with the whole text. */
  readonly pieces: readonly string[];
  /** Total length of all pieces. */
  readonly length: number;
  readonly thinking: string;
  /** Pictures as data URLs. */
  readonly images: readonly string[];
  readonly steps: readonly Step[];
  readonly callId: string | null;
  readonly provider: string | null;
  /** False: the provider goes on and bills if the reader stops it. null until its head came. */
  readonly stops: boolean | null;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  readonly firstAt: number | null;
  readonly endedAt: number | null;
  /** USD, including all calls under it. null until it is known. */
  readonly cost: number | null;
  readonly tokens: number | null;
  readonly fault: CallFault | null;
  /** Whether the reader stopped it. */
  readonly stopped: boolean;
  /** The reason why the answer is incomplete. */
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
  stops: null,
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

/** Turns the stored fault back into an error, for functions that explain errors. */
export const errorOfFault = ({ message, ...facts }: CallFault): ApiError => new ApiError(message, facts);
