// Instead of any page, while nobody has signed in.
import { useState } from "preact/hooks";
import { api, apiUrl, Failure, must } from "../api/client";
import { signIn } from "../api/session";
import { path, query } from "../router";
import { ProblemBox } from "../ui/bits";
import { useLoad, useTitle } from "../ui/hooks";

/** Leads to the provider and from there back to this place. */
function Provider() {
  const { data } = useLoad(() => must(api.GET("/api/v1/sign-in")), []);
  if (data?.oidc_issuer == null) return null;
  const search = query.value.toString();
  const here = path.value + (search === "" ? "" : `?${search}`);
  return (
    <p>
      <a class="button" href={apiUrl(`oidc-login?return_to=${encodeURIComponent(here)}`)}>
        Sign in with {new URL(data.oidc_issuer).host}
      </a>
    </p>
  );
}

export function SignIn() {
  const [key, setKey] = useState("");
  const [failure, setFailure] = useState<Failure | null>(null);
  useTitle("Sign in");
  const submit = (event: Event): void => {
    event.preventDefault();
    signIn(key.trim()).catch((e: unknown) => setFailure(e as Failure));
  };
  return (
    <main class="sign-in">
      <h1>
        <img src="./icon.svg" alt="" width="28" height="28" /> Sign in to pawl
      </h1>
      <Provider />
      <form onSubmit={submit}>
        <label>
          API key
          <input
            type="password"
            value={key}
            required
            maxLength={128}
            autocomplete="current-password"
            placeholder="pawl_…"
            onInput={(e) => setKey(e.currentTarget.value)}
          />
        </label>
        <button class="primary">Sign in</button>
      </form>
      {failure !== null && <ProblemBox failure={failure} />}
      <p class="faint">
        The key is exchanged for a session of eight hours; this page does not keep it. An administrator makes one for you:{" "}
        <code>pawl key create --tenant TENANT --role ROLE</code>
      </p>
    </main>
  );
}
