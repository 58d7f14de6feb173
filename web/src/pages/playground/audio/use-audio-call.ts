import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { send } from '../../../api/request.ts';
import { BALANCE_KEY } from '../account-state.tsx';
import { type CallFault, faultOf } from '../calls/answer.ts';

/** An answer, with the facts of its call. */
interface AudioAnswer<T> {
  readonly made: T;
  readonly callId: string | null;
  readonly provider: string | null;
  readonly ms: number;
}

interface AudioCall<T> {
  readonly busy: boolean;
  /** The newest answer; null before the first. */
  readonly answer: AudioAnswer<T> | null;
  readonly fault: CallFault | null;
  /** Sends a request. Does nothing while another one runs. */
  run(asked: Request): Promise<void>;
}

/** Sends one request after the other, and keeps what `read` makes of the newest answer. */
export function useAudioCall<T>(read: (reply: Response) => Promise<T>): AudioCall<T> {
  const queries = useQueryClient();
  const [busy, setBusy] = useState(false);
  const [answer, setAnswer] = useState<AudioAnswer<T> | null>(null);
  const [fault, setFault] = useState<CallFault | null>(null);
  return {
    busy,
    answer,
    fault,
    async run(asked) {
      if (busy) return;
      setBusy(true);
      setFault(null);
      const begun = Date.now();
      try {
        const reply = await send(asked);
        const made = await read(reply);
        setAnswer({
          made,
          callId: reply.headers.get('x-generation-id'),
          provider: reply.headers.get('x-provider'),
          ms: Date.now() - begun,
        });
      } catch (error) {
        setFault(faultOf(error));
      } finally {
        setBusy(false);
        void queries.invalidateQueries({ queryKey: BALANCE_KEY });
      }
    },
  };
}
