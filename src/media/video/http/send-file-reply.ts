import type { FastifyReply, FastifyRequest } from 'fastify';
import { createHttpSink } from '#wire';
import type { Config } from '#config';
import { type Admission, rateHeaders } from '#gateway';
import type { Blob, Blobs, Task } from '#tasks';
import { bodyOf, sendBody } from './send-files.ts';

interface SendFilesDeps {
  readonly blobs: Pick<Blobs, 'read'>;
  readonly config: Pick<Config, 'limits'>;
  /** Gets the error if a reply is interrupted. */
  readonly onError: (
    error: unknown,
    request: { readonly id: string; readonly method: string; readonly url: string },
  ) => void;
}

/** Answers a request with the files of a task. `several`: as an archive. */
export type SendFiles = (
  request: FastifyRequest,
  reply: FastifyReply,
  task: Task,
  files: readonly Blob[],
  several: boolean,
) => Promise<void>;

/** `admissionOf`: the admission of a request, for the rate headers. */
export function createSendFiles(
  { blobs, config, onError }: SendFilesDeps,
  admissionOf: (request: FastifyRequest) => Admission,
): SendFiles {
  return async (request, reply, task, files, several) => {
    const sink = createHttpSink(
      reply,
      config.limits.clientStallMs,
      () => {},
      () => rateHeaders(admissionOf(request).rate),
    );
    const more = { 'x-task-status': 'completed', 'x-generation-id': task.taskId };
    try {
      await sendBody(blobs, bodyOf(files, task.taskId, several), request.headers, more, sink);
    } catch (error) {
      if (!reply.sent) throw error;
      // The head is already sent, and the connection is closed. The client sees from the length that bytes are
      // missing.
      onError(error, request);
    }
    if (!reply.sent) reply.hijack();
  };
}
