// Express has no types of its own. These are the members that the SDK's handlers and the fixture use.
declare module 'express' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  export interface Request extends IncomingMessage {
    readonly path: string;
  }

  export interface Response extends ServerResponse {
    json(body: unknown): this;
  }

  export type RequestHandler = (request: Request, response: Response, next: () => void) => void;

  export interface Express {
    (request: IncomingMessage, response: ServerResponse): void;
    use(handler: RequestHandler): this;
    use(path: string, handler: RequestHandler): this;
    get(paths: readonly string[], handler: RequestHandler): this;
  }

  export default function express(): Express;
}
