import { Component, type ReactNode } from 'react';
import { ApiError } from '../api/api-error.ts';
import { isThere } from '../api/request.ts';
import { Button } from '../ui/button.tsx';
import { ErrorNote } from '../ui/error-note.tsx';

interface Props {
  readonly children: ReactNode;
}

interface State {
  readonly error: unknown;
  /** Why the file of a page could not be loaded. null while the gateway is asked, and for any other error. */
  readonly missing: 'replaced' | 'unreachable' | null;
}

/** How often a gateway that is away is asked again, in milliseconds. */
const ASK_MS = 2_000;

/**
 * Shows the error instead of a page that failed, or whose file could not be loaded: because a new version has other
 * files, or because the gateway is away. Once it is back, the page loads by itself.
 */
export class ErrorBoundary extends Component<Props, State> {
  override state: State = { error: null, missing: null };
  #timer: number | undefined;

  static getDerivedStateFromError(error: unknown): State {
    return { error, missing: null };
  }

  override componentDidCatch(error: unknown): void {
    if (isMissingFile(error)) void this.#look();
  }

  override componentWillUnmount(): void {
    clearTimeout(this.#timer);
  }

  async #look(): Promise<void> {
    clearTimeout(this.#timer);
    const wasAway = this.state.missing === 'unreachable';
    if (await isThere()) {
      if (wasAway) return location.reload();
      return this.setState({ missing: 'replaced' });
    }
    this.setState({ missing: 'unreachable' });
    this.#timer = window.setTimeout(() => void this.#look(), ASK_MS);
  }

  override render(): ReactNode {
    const { error, missing } = this.state;
    if (error === null) return this.props.children;
    if (missing === 'unreachable')
      return <ErrorNote error={UNREACHABLE} action={<Button onClick={() => void this.#look()}>Try again</Button>} />;
    if (isMissingFile(error) && missing === null) return null;
    return (
      <ErrorNote
        title={missing === 'replaced' ? 'There is a newer version of this page.' : 'This page failed.'}
        error={missing === 'replaced' ? 'Load it again to get the new version.' : error}
        action={<Button onClick={() => location.reload()}>Load again</Button>}
      />
    );
  }
}

const UNREACHABLE = new ApiError('The gateway does not answer', { status: 0, type: 'unreachable' });

const isMissingFile = (error: unknown): boolean => error instanceof TypeError && /import|module/i.test(error.message);
