import { randomBytes } from 'node:crypto';
import { PiecedBody, type PieceSource } from '#gateway';

const LINE = Buffer.from('\r\n');

/** A form (`multipart/form-data`, RFC 7578) whose files are not copied. */
export class FormBody {
  readonly contentType: string;
  readonly #boundary = `tollgate-${randomBytes(16).toString('hex')}`;
  readonly #body = new PiecedBody();

  constructor() {
    this.contentType = `multipart/form-data; boundary=${this.#boundary}`;
  }

  /** A text stays as it is. Any other value is written as JSON. */
  field(name: string, value: unknown): void {
    this.#part(`name="${nameOf(name)}"`, Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)));
  }

  /** `type`: the media type. */
  file(name: string, fileName: string, type: string, content: PieceSource): void {
    this.#part(`name="${nameOf(name)}"; filename="${fileName}"\r\ncontent-type: ${type}`, content);
  }

  /** The whole form. Nothing can be added after it. */
  end(): PiecedBody {
    return this.#body.add(Buffer.from(`--${this.#boundary}--\r\n`));
  }

  #part(head: string, content: Uint8Array | PieceSource): void {
    this.#body
      .add(Buffer.from(`--${this.#boundary}\r\ncontent-disposition: form-data; ${head}\r\n\r\n`))
      .add(content)
      .add(LINE);
  }
}

/** As browsers write names: these three characters would end the name or the line. */
const nameOf = (name: string): string =>
  name.replaceAll(/[\r\n"]/g, (character) => (character === '"' ? '%22' : character === '\r' ? '%0D' : '%0A'));
