import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useRef } from 'react';
import type { CallDetail } from '../../../api/own.ts';
import { BALANCE_KEY } from '../account-state.tsx';
import type { Answer } from './answer.ts';
import { RECORD_KEY } from './call-record.ts';
import { type CallBody, runCall } from './run-call.ts';

/** Milliseconds between two updates of a growing answer. */
const DRAW_MS = 50;

/**
 * Makes calls, one at a time. `onChange` gets the growing answer at most every 50 ms, and once more at the end. The
 * call stops when the component is removed.
 */
export function useCall(): {
  readonly run: (body: CallBody, onChange: (answer: Answer) => void) => Promise<Answer>;
  readonly stop: () => void;
} {
  const queries = useQueryClient();
  const running = useRef<AbortController>(null);
  const stop = useCallback(() => running.current?.abort(), []);
  useEffect(() => stop, [stop]);
  const run = useCallback(
    async (body: CallBody, onChange: (answer: Answer) => void) => {
      const own = new AbortController();
      running.current?.abort();
      running.current = own;
      let latest: Answer | null = null;
      const timer = setInterval(() => {
        if (latest !== null) onChange(latest);
        latest = null;
      }, DRAW_MS);
      const answer = await runCall(body, own.signal, (next) => (latest = next));
      clearInterval(timer);
      onChange(answer);
      void queries.invalidateQueries({ queryKey: BALANCE_KEY });
      // This call may also have settled an earlier call of the same task.
      void queries.invalidateQueries({
        queryKey: RECORD_KEY,
        predicate: ({ state }) => (state.data as CallDetail | undefined)?.state === 'held',
      });
      return answer;
    },
    [queries],
  );
  return { run, stop };
}
