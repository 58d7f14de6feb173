export { createKeptResponses } from './create-kept-responses.ts';
export type {
  KeptContent,
  KeptEvents,
  KeptResponse,
  KeptResponses,
  ReadContent,
  RunningEnd,
  RunningResponses,
} from './kept-response.ts';
