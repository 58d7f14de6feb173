import { isObject } from '#wire';
import type { ChatBody } from './chat-schema.ts';

/** Whether the client asks for the usage of a stream. */
export const asksUsage = ({ stream_options: options }: ChatBody): boolean =>
  isObject(options) && options['include_usage'] === true;
