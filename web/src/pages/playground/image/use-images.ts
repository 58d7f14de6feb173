import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import type { Schemas } from '../../../api/client.ts';
import { request } from '../../../api/request.ts';
import { newId } from '../../../app/new-id.ts';
import { BALANCE_KEY } from '../account-state.tsx';
import { type CallFault, faultOf } from '../calls/answer.ts';
import { type ImageAsk, imageBody, imagePath } from './image-ask.ts';

export interface MadeImage {
  readonly dataUrl: string;
  readonly width: number;
  readonly height: number;
  readonly format: string;
}

/** One image request, complete or still running. */
export interface ImageRun {
  readonly id: string;
  readonly ask: ImageAsk;
  readonly running: boolean;
  readonly images: readonly MadeImage[];
  readonly callId: string | null;
  readonly provider: string | null;
  readonly cost: number | null;
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly fault: CallFault | null;
}

const KEPT_MAX = 24;
const PICTURE = /^data:image\/(?:png|jpeg|webp);base64,/;

/**
 * Makes images. `runs` has the newest run first. The images are lost with the page, because the gateway stores no
 * images.
 */
export function useImages(model: string): {
  readonly runs: readonly ImageRun[];
  readonly make: (ask: ImageAsk, quoteId: string | null) => Promise<void>;
} {
  const queries = useQueryClient();
  const [runs, setRuns] = useState<readonly ImageRun[]>([]);
  const gone = useRef(new AbortController());
  useEffect(() => {
    gone.current = new AbortController();
    return () => gone.current.abort();
  }, []);

  const make = async (ask: ImageAsk, quoteId: string | null) => {
    const id = newId();
    const begun: ImageRun = {
      id,
      ask,
      running: true,
      images: [],
      callId: null,
      provider: null,
      cost: null,
      startedAt: Date.now(),
      endedAt: null,
      fault: null,
    };
    setRuns((all) => [begun, ...all].slice(0, KEPT_MAX));
    const change = (more: Partial<ImageRun>) =>
      setRuns((all) => all.map((run) => (run.id === id ? { ...run, ...more } : run)));
    try {
      const reply = await request(imagePath(ask), {
        method: 'POST',
        json: imageBody(model, ask),
        ...(quoteId === null ? {} : { headers: { 'x-quote-id': quoteId } }),
        signal: gone.current.signal,
      });
      const { images, usage } = (await reply.json()) as Schemas['GeneratedImages'];
      change({
        running: false,
        endedAt: Date.now(),
        callId: reply.headers.get('x-generation-id'),
        provider: reply.headers.get('x-provider'),
        cost: usage.cost,
        images: images.flatMap(({ data_url: dataUrl, width = 0, height = 0, format = 'png' }) =>
          dataUrl !== undefined && PICTURE.test(dataUrl) ? [{ dataUrl, width, height, format }] : [],
        ),
      });
    } catch (error) {
      if (!gone.current.signal.aborted) change({ running: false, endedAt: Date.now(), fault: faultOf(error) });
    }
    void queries.invalidateQueries({ queryKey: BALANCE_KEY });
  };
  return { runs, make };
}
