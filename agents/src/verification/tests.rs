use super::summary_table::LineVerdict;
use super::*;

fn names(line: &str) -> Vec<String> {
    let Some(found) = CheckCommandLine::from_line(line) else { return Vec::new() };
    let ended = RecordedCommandEnd { outcome: "unknown", exit_code: None, output: "" };
    found.outcomes(&ended).into_iter().map(|outcome| outcome.name).collect()
}

fn ended(line: &str, outcome: &str, exit_code: Option<i64>, output: &str) -> String {
    let Some(found) = CheckCommandLine::from_line(line) else { return "no check".to_owned() };
    let outcomes = found.outcomes(&RecordedCommandEnd { outcome, exit_code, output });
    let statuses = outcomes.iter().map(|it| format!("{}:{}", it.number + 1, it.status));
    statuses.collect::<Vec<_>>().join(" ")
}

fn status(line: &str, exit_code: impl Into<Option<i64>>, output: &str) -> String {
    let exit_code = exit_code.into();
    let all = ended(line, "finished", exit_code, output);
    all.strip_prefix("1:").filter(|rest| !rest.contains(' ')).map_or(all.clone(), str::to_owned)
}

#[test]
fn known_commands_are_found_at_any_position() {
    for (line, expected) in [
        ("cargo test --release", "cargo test"),
        ("cargo +nightly clippy", "cargo clippy"),
        ("cd a && RUST_BACKTRACE=1 cargo nextest run | tail", "cargo nextest run"),
        ("timeout 60 go test ./...", "go test"),
        ("sudo -E env A=1 /usr/bin/make -j4 check", "make check"),
        ("npm run test:unit", "npm run test:unit"),
        ("npx jest a.test.js", "jest"),
        ("python3 -m pytest -q", "pytest"),
        ("uv run ruff check .", "ruff check"),
        ("mise run fmt && mise run lint", "mise run lint"),
        ("mise run lint; mise run test:ci", "mise run lint, mise run test:ci"),
        ("gci | select Name, Length; cargo test", "cargo test"),
        ("select it in a b; do cargo test; done; npm test", "cargo test, npm test"),
        ("cmake --build out", "cmake --build"),
        ("bash -lc \"cargo test\"", "cargo test"),
        ("sh -c 'cd a && make test'", "make test"),
        ("node --test", "node --test"),
        ("./mvnw -q test", "mvnw test"),
        ("uvx --with x pytest", "pytest"),
        ("npm t", "npm t"),
        ("python3 manage.py test", "manage.py test"),
        ("cargo fmt --all -- --check", "cargo fmt --check"),
        ("docker compose -f a.yml run --rm -e A=b web pytest -q", "pytest"),
        ("docker compose exec -T web python -m pytest", "pytest"),
        ("docker run --rm -v a:b -w /w image cargo test", "cargo test"),
        ("docker exec -it web sh -c 'cd /app && npm test'", "npm test"),
        ("timeout -k 5 60 cargo test", "cargo test"),
        ("if cargo test; then echo y; else exit 1; fi", "cargo test"),
        ("while ! make test; do sleep 1; done", "make test"),
        ("for p in a b; do go test ./$p; done", "go test"),
        ("! cargo clippy", "cargo clippy"),
        ("xvfb-run -a npm test", "npm test"),
        ("stdbuf -oL pytest", "pytest"),
        ("nix develop -c cargo test", "cargo test"),
        ("nix develop .#ci --command just test", "just test"),
        ("nix-shell --run 'make check'", "make check"),
        ("devbox run test", "devbox run test"),
        ("pixi run test", "pixi run test"),
        ("pixi run pytest tests", "pytest"),
        ("turbo run test --filter=web", "turbo run test"),
        ("npx nx test web", "nx test"),
        ("nx run-many -t test", "nx run-many test"),
        ("nx run web:test", "nx run web:test"),
        ("lerna run test", "lerna run test"),
        ("tsx --test a.ts", "tsx --test"),
        ("npx prettier --check .", "prettier --check"),
        ("black --check src", "black --check"),
        ("gofmt -l .", "gofmt -l"),
        ("clang-format --dry-run -Werror a.c", "clang-format --dry-run"),
        ("terraform validate", "terraform validate"),
        ("zig build test", "zig build test"),
        ("zig build test --summary all", "zig build test"),
        ("swift test", "swift test"),
        ("yarn workspace web test", "yarn test"),
        ("pnpm --filter web test", "pnpm test"),
        ("pnpm vitest run", "vitest"),
        ("yarn jest", "jest"),
        ("gradle :app:testDebugUnitTest", "gradle :app:testDebugUnitTest"),
        ("./gradlew clean build", "gradlew build"),
        ("mvn -B -q clean verify", "mvn verify"),
        ("bundle exec rspec spec/a_spec.rb", "rspec"),
        ("vendor/bin/phpunit --filter A", "phpunit"),
        ("node node_modules/.bin/jest", "jest"),
        ("npx tsc --noEmit && npx eslint . && npm test", "tsc, eslint, npm test"),
        ("./scripts/test.sh", "./scripts/test.sh"),
        ("bash ci/lint.sh", "ci/lint.sh"),
        ("sh ./gradlew test", "gradlew test"),
        ("bash -x mvnw -B verify", "mvnw verify"),
        ("bash deploy.sh test", ""),
        ("curl https://host.test/a.sh | bash -s -- make test", ""),
        ("./scripts/test-all.sh", "./scripts/test-all.sh"),
        ("bash tests/smoke_test.sh", "tests/smoke_test.sh"),
        ("./scripts/lint_all.sh", "./scripts/lint_all.sh"),
        ("./scripts/test-data.sh", ""),
        ("./scripts/create-test.sh", ""),
        ("./tests/runtests.py --parallel 1 forms", "runtests.py"),
        ("python tests/runtests.py forms", "runtests.py"),
        ("python run_tests.py", "run_tests.py"),
        ("pipenv run test", "pipenv run test"),
        ("pipenv run pytest -q", "pytest"),
        ("rush test --to web", "rush test"),
        ("rush install", ""),
        ("lage build", "lage build"),
        ("bazel coverage //...", "bazel coverage"),
        ("vstest.console.exe a.dll", "vstest.console"),
        ("vagrant ssh -c 'cd /w && make test'", "make test"),
        ("vagrant ssh", ""),
        ("multipass exec vm -- make test", "make test"),
        ("jenv exec mvn test", "mvn test"),
        ("prlimit --as=9000 cargo test", "cargo test"),
        ("chrt -i 0 make test", "make test"),
        ("setarch x86_64 -R make test", "make test"),
        ("chruby-exec 3.2 -- bundle exec rspec", "rspec"),
        ("fnm exec --using 20 npm test", "npm test"),
        ("railway run -s web npm test", "npm test"),
        ("toolbox run -c dev make test", "make test"),
        ("volta run --node 20 npm test", "npm test"),
        ("bin/rails test:system", "rails test:system"),
        ("cargo insta test", "cargo insta test"),
        ("go tool golangci-lint run", "golangci-lint run"),
        ("fvm flutter test", "flutter test"),
        ("make fmt-check", "make fmt-check"),
        ("conda run -n env pytest", "pytest"),
        ("npm run --prefix web build", "npm run build"),
        ("make -C sub test", "make test"),
        ("cargo test; rc=$?; exit $rc", "cargo test"),
        ("ssh -p 22 host 'cd a && cargo test'", "cargo test"),
        ("npx nyc mocha", "mocha"),
        ("npx c8 -r lcov node --test", "node --test"),
        ("git diff --name-only | xargs -n 5 npx eslint", "eslint"),
        ("out=$(cargo test 2>&1); echo $?", "cargo test"),
        ("time (cargo test)", "cargo test"),
        ("powershell.exe -NoProfile -Command \"npm test\"", "npm test"),
        ("pwsh -c cargo test", "cargo test"),
        ("cmd.exe /s /c npm test", "npm test"),
        (r".\gradlew.bat test", "gradlew test"),
        ("npx.cmd jest", "jest"),
        ("pnpm.cmd exec vitest run", "vitest"),
        (r".\scripts\test.ps1 -Fast", r".\scripts\test.ps1"),
        (r"powershell -ExecutionPolicy Bypass -File .\build.ps1", r".\build.ps1"),
        (r"& C:\app\build.cmd", r"C:\app\build.cmd"),
        (r".\scripts\deploy.ps1 test", ""),
        (r"tools\publish.bat", ""),
        (r"& C:\tools\node_modules\.bin\jest", "jest"),
        (r"cd src\app; ..\.venv\Scripts\python.exe -m pytest", "pytest"),
        ("xcrun xcodebuild -scheme A clean test", "xcodebuild clean test"),
        ("./vendor/bin/sail test", "sail test"),
        ("composer exec phpunit", "phpunit"),
        ("yarn workspace web vitest run", "vitest"),
        ("docker --context x run img pytest", "pytest"),
        ("kubectl -n x exec pod -- pytest", "pytest"),
        ("ssh -tt u@h -- pytest", "pytest"),
        ("deno task -c a.json test", "deno task test"),
        ("rails test:models", "rails test:models"),
        ("npx --prefix web vitest run", "vitest"),
        ("npm exec -w web -- tsc", "tsc"),
        ("uv run --no-group dev --resolution lowest pytest", "pytest"),
        ("docker run --rm --cap-drop ALL --pids-limit 9 img pytest", "pytest"),
        ("docker container run --rm img pytest", "pytest"),
        ("coverage run --concurrency thread -m pytest", "pytest"),
        ("pnpm --loglevel warn test", "pnpm test"),
        ("systemd-run --scope -p MemoryMax=2G cargo test", "cargo test"),
        ("noglob pnpm test", "pnpm test"),
        ("rtk cargo test", "cargo test"),
        ("rtk err npm run build", "npm run build"),
        ("npx dotenv-cli -e .env -- jest", "jest"),
        ("lxc exec web -- pytest", "pytest"),
        ("faketime '2024-01-01' pytest", "pytest"),
        (r"cmd /c .\gradlew.bat test", "gradlew test"),
        (r".venv\Scripts\python.exe -m pytest", "pytest"),
        (r".\node_modules\.bin\jest.cmd", "jest"),
        ("npx.cmd tsc --noEmit", "tsc"),
        ("call npm.cmd test", "npm test"),
        ("winpty python -m pytest", "pytest"),
        (r"pwsh -File scripts\test.ps1", r"scripts\test.ps1"),
        ("./test.bat", "./test.bat"),
        ("su - app -c 'pytest'", "pytest"),
        ("runuser -u app -- pytest", "pytest"),
        ("eval 'cargo test'", "cargo test"),
        ("dotenv -e .env -- npx jest", "jest"),
        ("sbt 'testOnly a.B'", "sbt testOnly"),
        ("sbt 'project core; clean; test'", "sbt test"),
        ("sbt clean core/test", "sbt test"),
        ("sbt Test/compile core/testQuick", "sbt testQuick"),
        ("sbt -Dx=1 test:compile", "sbt Test/compile"),
        ("sbt run", ""),
        ("sbt ~test", ""),
        ("dotenv -f .env run -- pytest", "pytest"),
        ("dotenvx run -f .env -- pytest", "pytest"),
        ("poetry -C sub run pytest", "pytest"),
        ("uv -q --directory sub run pytest", "pytest"),
        ("hatch -e dev run pytest", "pytest"),
        ("pnpm -C web exec vitest run", "vitest"),
        ("yarn --cwd web jest", "jest"),
        ("npm --prefix web exec -- vitest run", "vitest"),
        ("npm --prefix web install", ""),
        ("npx -c 'vitest run'", "vitest"),
        ("env -S 'A=1 pytest'", "pytest"),
        ("script -qec 'cargo test' /dev/null", "cargo test"),
        ("op run --env-file .env -- pytest", "pytest"),
        ("taskset -c 0 flock /tmp/l cargo test", "cargo test"),
        ("yarn workspaces foreach -A run test", "yarn test"),
        ("behave", "behave"),
        ("npx cucumber-js", "cucumber-js"),
        ("robot tests", "robot"),
        ("devcontainer exec --workspace-folder . cargo test", "cargo test"),
        ("files=$(git ls-files); echo $files", ""),
        ("checks+=(cargo test); checks=(make test); echo ${checks:-a; pytest}", ""),
        ("pwsh -File a.ps1", ""),
        ("su app", ""),
        ("py -3.12 -m pytest", "pytest"),
        ("busybox sh -c 'make test'", "make test"),
        ("ash -c 'make test'", "make test"),
        ("wsl -d Ubuntu -- bash -lc 'cargo test'", "cargo test"),
        ("wsl cargo test", "cargo test"),
        ("mise exec node@20 -- npm test", "npm test"),
        ("mise exec -- npm test", "npm test"),
        ("kubectl exec -it pod -c web -- pytest", "pytest"),
        ("kubectl exec pod pytest", "pytest"),
        ("script -q /dev/null cargo test", "cargo test"),
        ("script out.txt", ""),
        ("arch -x86_64 make test", "make test"),
        ("arch", ""),
        ("strace -f -o log cargo test", "cargo test"),
        ("perf stat -r 3 cargo test", "cargo test"),
        ("guix shell gcc -- make check", "make check"),
        ("./vendor/bin/sail artisan test", "artisan test"),
        ("pnpm t", "pnpm t"),
        ("yarn workspace web run test", "yarn test"),
        ("cargo nextest --profile ci run", "cargo nextest run"),
        ("cargo hack test --each-feature", "cargo hack test"),
        ("nose2 -v", "nose2"),
        ("node --run test", "node --run test"),
        ("node build.js", ""),
        ("npx hardhat test", "hardhat test"),
        ("mix precommit", "mix precommit"),
        ("mix deps.get", ""),
        ("tofu test", "tofu test"),
        ("ansible-playbook -i h --syntax-check a.yml", "ansible-playbook --syntax-check"),
        ("dbt build --select a", "dbt build"),
        ("vendor/bin/php-cs-fixer fix --dry-run", "php-cs-fixer --dry-run"),
        ("go run gotest.tools/gotestsum@latest ./...", "gotestsum"),
        ("go run main.go test", ""),
        ("melos run test", "melos run test"),
        ("sshpass -p x ssh host pytest", "pytest"),
        ("apptainer exec a.sif pytest", "pytest"),
        ("mpirun -n 4 pytest", "pytest"),
        ("make mypy", "make mypy"),
        ("./gradlew :server:test", "gradlew :server:test"),
        ("./gradlew :test-data:clean", ""),
        ("nx run server:test:ci", "nx run server:test:ci"),
        ("nx run test-app:serve", ""),
        ("nx run-many -t test:integration", "nx run-many test:integration"),
        ("nx run test:serve", ""),
        ("npm run jest", "npm run jest"),
        ("bun run jest", "jest"),
        ("poetry run mypy a", "mypy"),
        (".venv/bin/ruff format .", ""),
        ("gradle :a:dependencies --configuration testRuntimeClasspath", ""),
        ("rake db:test:prepare", ""),
        ("npm run generate:types", ""),
        ("make verify-codegen", "make verify-codegen"),
        ("make unittests", "make unittests"),
        ("npx run-s lint test", "run-s lint"),
        ("./mill __.test", "mill __.test"),
        ("govulncheck ./...", "govulncheck"),
        ("npx cspell lint src", "cspell lint"),
        ("npx cspell trace word", ""),
        ("npx elm-test init", ""),
        ("npx testcafe -b", ""),
        ("clang-tidy a.cpp", "clang-tidy"),
        ("cppcheck src", ""),
        ("cppcheck --error-exitcode=1 src", "cppcheck --error-exitcode"),
        ("pants test ::", "pants test"),
        ("npx vue-cli-service test:unit", "vue-cli-service test:unit"),
        ("dotnet publish", "dotnet publish"),
        ("shellspec --format tap", "shellspec"),
        ("helm unittest charts/a", "helm unittest"),
        ("make distcheck", "make distcheck"),
        ("npm run checks", "npm run checks"),
        ("forge test -vvv", "forge test"),
        ("ls; git status", ""),
        ("echo 'cargo test'", ""),
        ("go run -", ""),
        ("cargo fmt", ""),
        ("cargo run", ""),
        ("make", ""),
        ("black .", ""),
        ("prettier --write .", ""),
        ("ruff format .", ""),
        ("pytest --version", ""),
        ("pytest --collect-only -q", ""),
        ("cargo test --help", ""),
        ("cargo test -- --list", ""),
        ("git grep pytest", ""),
        ("grep -rn 'cargo test' .", ""),
        ("pip install pytest", ""),
        ("npm install --save-dev jest", ""),
        ("npm ci", ""),
        ("npm run test:watch", ""),
        ("npm run dev", ""),
        ("command -v cargo", ""),
        ("which pytest", ""),
        ("python -c 'import pytest'", ""),
        ("cat test.sh", ""),
        ("test -f a", ""),
        ("/usr/bin/test -f a", ""),
        ("docker ps", ""),
        ("uv pip install mypy", ""),
        ("f() { cargo test; }", ""),
        ("git commit -m \"$(cat <<'EOF'\ncargo test\nEOF\n)\"", ""),
    ] {
        assert_eq!(names(line).join(", "), expected, "{line}");
    }
}

/// Regression: a call that lists, plans or compiles tests without running them passed as a check.
#[test]
fn a_call_that_runs_no_check_is_none() {
    for line in [
        "ctest -N",
        "ctest --test-dir b --show-only=json-v1",
        "gradle test -m",
        "./gradlew.bat test -m",
        "tox -l",
        "tox list",
        "nox --list-sessions",
        "pytest --setup-plan",
        "go test -c ./a",
        "go test -n ./...",
        "swift test list",
        "deno test --no-run",
        "rake -n test",
        "rake -T test",
        "just -n test",
        "just --show test",
        "task --dry test",
        "turbo run test --dry=json",
        "turbo run test --dry-run=json",
        "mise run -n test",
        "make -nC sub test",
        "make -j4 -kn test",
        "gmake -n test",
        "make -q test",
        "make --touch test",
        "ninja -n",
        "ninja clean",
        "bazel test --nobuild //...",
        "tsc -v",
        "tsc -b --clean",
        "eslint --print-config=a.js",
        "golangci-lint linters",
        "golangci-lint version",
        "vitest list",
        "dmypy status",
        "phpunit --list-suites",
        "rubocop -L",
        "gofmt -l -w .",
        "robot --dryrun t",
        "bats --count t",
        "xcodebuild test -dry-run",
        "cmake --build b --target clean",
        // Regression: their other subcommands and the option for their version passed.
        "cargo deny init",
        "cargo llvm-cov report --lcov",
        "ginkgo build ./...",
        "dmypy restart",
        "tox l",
        "gotestsum tool slowest",
        "dotnet test -t",
        "gradle help --task test",
        "tap report",
        "actionlint -version",
        "jest -v",
        "eslint -v",
        "vitest -v",
        "rspec -v",
        "yamllint -v",
        "rubocop -V",
    ] {
        assert_eq!(names(line).join(", "), "", "{line}");
    }
    for (line, expected) in [
        ("go vet -c=5 ./...", "go vet"),
        ("just test -n", "just test"),
        ("mise run test -n auto", "mise run test"),
        ("make -Cnew -j4 -Otarget test", "make test"),
        ("make -f nightly.mk -k check", "make check"),
        ("golangci-lint run fmt", "golangci-lint run"),
        ("zig test a.zig -lc", "zig test"),
        ("pytest -n 4 list", "pytest"),
        ("vitest run list", "vitest"),
        ("cargo deny check list", "cargo deny check"),
        ("pytest -v", "pytest"),
        // Regression: for these programs, an option that prints the version of others means more.
        ("ctest -V", "ctest"),
        ("mvn -B -V verify", "mvn verify"),
        ("./gradlew -V test", "gradlew test"),
        ("robot -V vars.py t", "robot"),
        ("pg_prove -h localhost t/a.sql", "pg_prove"),
    ] {
        assert_eq!(names(line).join(", "), expected, "{line}");
    }
    let kind = |line: &str| {
        let found = CheckCommandLine::from_line(line).unwrap();
        let ended = RecordedCommandEnd { outcome: "finished", exit_code: Some(0), output: "" };
        found.outcomes(&ended).remove(0).check
    };
    assert_eq!(kind("cargo nextest run --no-run"), CheckKind::Build);
    assert_eq!(kind("cargo bench --no-run"), CheckKind::Build);
    assert_eq!(kind("mvn install"), CheckKind::Test);
    assert_eq!(kind("mvn install -DskipTests"), CheckKind::Build);
    assert_eq!(kind("./gradlew compileTestKotlin"), CheckKind::Build);
    assert_eq!(kind("gradle testClasses"), CheckKind::Build);
    assert_eq!(kind("npm run build:test"), CheckKind::Build);
    assert_eq!(kind("make build-and-test"), CheckKind::Test);
    assert_eq!(kind("./gradlew testDebugUnitTest"), CheckKind::Test);
    assert_eq!(kind("mvn verify -Dmaven.test.skip=true"), CheckKind::Build);
    assert_eq!(kind("mvn verify -DskipTests=false"), CheckKind::Test);
}

#[test]
fn the_own_exit_code_of_a_check_has_priority() {
    assert_eq!(
        status("pytest", 0, "ERROR    app:app.py:10 refused\n=== 3 passed in 0.1s ==="),
        "passed"
    );
    assert_eq!(
        status("go test -v ./...", 0, "FAIL is expected here\nFAIL\nok  \tx\t0.1s"),
        "passed"
    );
    assert_eq!(
        status("make test", 0, "--- FAIL: TestA (0.00s)\ntest result: FAILED. 1 passed"),
        "passed"
    );
    assert_eq!(status("cargo test", 101, "test result: ok. 1 passed"), "failed");
    assert_eq!(status("cd x && cargo test && echo ok | tee log", 0, "ok"), "passed");
    assert_eq!(status("true; cargo test", 0, ""), "passed");
    assert_eq!(status("cargo test", None, ""), "unknown");
    assert_eq!(status("cargo test", None, "test result: ok. 1 passed; 0 failed"), "passed");
    for (code, expected) in [
        (124, "failed"),
        (126, "error"),
        (127, "error"),
        (130, "unknown"),
        (137, "unknown"),
        (143, "unknown"),
        (-1, "unknown"),
        (134, "failed"),
        (139, "failed"),
    ] {
        assert_eq!(status("timeout 5 cargo test", code, ""), expected, "{code}");
    }
    for (code, output, expected) in [
        (1, "", "failed"),
        (2, "", "unknown"),
        (2, "=== 1 error in 0.05s ===", "failed"),
        (4, "ERROR: file not found", "error"),
        (5, "=== no tests ran in 0.01s ===", "unknown"),
    ] {
        assert_eq!(status("pytest", code, output), expected, "{code}");
    }
}

#[test]
fn an_exit_code_of_another_command_gives_no_verdict() {
    for line in [
        "cargo test | tail",
        "cargo test || true",
        "cargo test; true",
        "cargo test && ls; true",
        "cargo test &",
        "for p in a b; do cargo test -p $p; done",
        "while ! cargo test; do sleep 1; done",
        "cargo test > log; ls",
    ] {
        assert_eq!(status(line, 0, "x"), "unknown", "{line}");
    }
    for line in
        ["npm install && npm test", "cargo test | grep x", "git pull; cargo test && git push"]
    {
        assert_eq!(status(line, 1, "x"), "unknown", "{line}");
    }
    // A check that did not run has no verification.
    assert_eq!(status("false && cargo test", 1, ""), "");
    assert_eq!(
        status("cd x && cargo test", 1, "bash: line 1: cd: x: No such file or directory"),
        ""
    );
    assert_eq!(
        status("cargo test)", 2, "bash: -c: line 1: syntax error near unexpected token `)'"),
        ""
    );
    for message in [
        "zsh:1: parse error near `\\n'",
        "zsh:1: unmatched '",
        "sh: 1: Syntax error: \")\" unexpected",
        "ParserError: \nLine |\n   1 |  cd web && npm test |\n     | An empty pipe element is not allowed.",
        // The first lines are in the language of the system.
        "In Zeile:1 Zeichen:8\n+ cd web && npm test\n+        ~~\nDas Token \"&&\" ist falsch.\n    + CategoryInfo          : ParserError: (:) [], ParentContainsErrorRecordException",
    ] {
        assert_eq!(status("cd web && npm test", 1, message), "", "{message}");
    }
    let of_recipe = "/bin/sh: 1: Syntax error: x\nmake: *** [Makefile:3: test] Error 2";
    assert_eq!(status("make -s test", 2, of_recipe), "failed");
    let of_script = "At C:\\w\\a.ps1:1 char:8\n+ a && b\n+   ~~\n    + CategoryInfo          : ParserError: (:) [], ParseException";
    assert_eq!(status("npm test", 1, of_script), "failed");
    for message in [
        "npm : File C:\\Program Files\\nodejs\\npm.ps1 cannot be loaded because running scripts is disabled",
        "npm : ファイル C:\\Program Files\\nodejs\\npm.ps1 を読み込むことができません。",
        "npm: The term 'npm' is not recognized as a name of a cmdlet",
        "npm: \nLine |\n   1 |  npm test\n     | The term 'npm' is not recognized as a name of a cmdlet",
        "npm : x\n+ npm test\n+ ~~~\n    + CategoryInfo          : ObjectNotFound: (npm:String) [], CommandNotFoundException",
    ] {
        assert_eq!(status("npm test", 1, message), "error", "{message}");
    }
    for (line, message) in [
        ("node node_modules/.bin/jest", "Error: Cannot find module '/w/node_modules/.bin/jest'"),
        (
            "npx --no-install jest",
            "npm error npx canceled due to missing packages and no YES option",
        ),
        (
            "python -m pytest",
            "Python was not found; run without arguments to install from the Store",
        ),
        ("make test", "xcode-select: note: No developer tools were found, requesting install."),
        ("make test", "xcrun: error: invalid active developer path (/Library/Developer)"),
        ("mvn test", "The operation couldn’t be completed. Unable to locate a Java Runtime."),
        ("./gradlew test", "ERROR: JAVA_HOME is not set and no 'java' command could be found."),
        ("cargo test", "error: rustup could not choose a version of cargo to run"),
    ] {
        assert_eq!(status(line, 1, message), "error", "{line}");
    }
    let other = "Error: Cannot find module '/w/src/jest-helper'";
    assert_eq!(status("node node_modules/.bin/jest", 1, other), "failed");
    let no_match = "zsh:1: no matches found: a.py::test_x[1]";
    assert_eq!(status("pytest a.py::test_x[1]", 1, no_match), "error");
    assert_eq!(status("rm *.x; pytest", 1, &format!("{no_match}\nx")), "failed");
    assert_eq!(ended("cargo test", "refused", None, ""), "");
    assert_eq!(ended("cargo test", "background", None, ""), "1:unknown");
    assert_eq!(ended("cargo test", "interrupted", None, "test result: ok. 1 passed"), "1:unknown");
    assert_eq!(ended("cargo test", "timed_out", None, ""), "1:timed_out");
    // The exit code belongs to the client that stopped the command, not to the check.
    assert_eq!(ended("cargo test", "timed_out", Some(124), ""), "1:timed_out");
}

#[test]
fn an_exit_code_is_followed_through_the_line() {
    for (line, code, output, expected) in [
        ("cd x && cargo test", 101, "x", "failed"),
        ("if cargo test; then echo y; else exit 1; fi", 1, "", "failed"),
        ("if cargo test; then echo y; else exit 1; fi", 0, "y", "passed"),
        ("if cargo test; then echo good; else echo bad; fi", 0, "bad", "failed"),
        ("! cargo test", 0, "", "failed"),
        ("! cargo test", 1, "", "passed"),
        ("cargo test || exit 1", 1, "", "failed"),
        ("cargo test || exit 1; ls", 0, "", "passed"),
        ("cargo test || { echo no; exit 1; }", 0, "x", "passed"),
        ("set -e; cargo test; ls", 0, "", "passed"),
        ("set -e; { cargo test; ls; }; ls", 0, "", "passed"),
        ("set -e; (cargo test && ls); ls", 0, "", "passed"),
        // The exit code is tested after the check.
        ("cargo test\nif [ $? -eq 0 ]; then echo OK; else echo BAD; fi", 0, "x\nBAD", "failed"),
        ("cargo test; if [[ $? != 0 ]]; then exit 1; fi; echo fine", 0, "x\nfine", "passed"),
        ("cargo test; if [ $? -ne 0 ]; then exit 1; fi", 1, "x", "failed"),
        ("cargo test; [ $? -eq 0 ] && echo OK", 0, "OK", "passed"),
        ("cargo test; test $? -eq 0", 1, "x", "failed"),
        ("cargo test | tail; if [ $? -ne 0 ]; then exit 1; fi", 0, "x", "unknown"),
        ("cargo test; ls; if [ $? -eq 0 ]; then echo OK; fi", 0, "OK", "unknown"),
        // So is a variable that holds it, if nothing else uses the variable.
        ("cargo test; s=$?; if [ $s -eq 0 ]; then echo A; else echo B; fi", 0, "x\nB", "failed"),
        ("cargo test; s=$?; if [ $s -eq 0 ]; then echo A; else echo B; fi", 0, "x\nA", "passed"),
        ("cargo test; s=$?; [ \"$s\" -ne 0 ] && echo B || echo A; ls", 0, "x\nB", "failed"),
        ("cargo test; s=$?; ls; [ $s -eq 0 ] && echo A || echo B", 0, "x\nB", "unknown"),
        // In zsh, `PIPESTATUS` is empty, so such a test holds, or is an error without quotes.
        (
            "cargo test | tail; [ \"${PIPESTATUS[0]}\" -eq 0 ] && echo A || echo B",
            0,
            "x\nA",
            "unknown",
        ),
        ("cargo test | tail; [ ${PIPESTATUS[0]} -eq 0 ] && echo A || echo B", 0, "x\nB", "unknown"),
        ("cargo test | tail; [[ ${PIPESTATUS[0]} -ne 0 ]] && echo B; ls", 0, "x", "unknown"),
        (
            "cargo test | tail; s=${PIPESTATUS[0]}; [[ $s -eq 0 ]] && echo A || echo B",
            0,
            "x\nA",
            "unknown",
        ),
        ("cargo test | cat; s=$?; [ $s -eq 0 ] && echo A || echo B", 0, "x\nA", "unknown"),
        ("cargo test; s=$?; [ $s -eq 0 ] && echo A; echo s=$s", 0, "x\ns=101", "failed"),
        // Such a test does not hide what else the line says about the exit code or the output.
        ("cargo test; echo \"exit $?\"; if [ $? -eq 0 ]; then ls; fi", 0, "exit 101", "failed"),
        ("cargo test; rc=$?; [ $? -eq 0 ] && ls; exit $rc", 101, "x", "failed"),
        (
            "cargo test > log 2>&1; [ $? -eq 0 ] || tail log",
            0,
            "test result: FAILED. 1 passed; 1 failed",
            "failed",
        ),
        ("cargo test & wait; [ $? -eq 0 ] && ls", 0, "test result: ok. 1 passed", "passed"),
        // The test runs in the background, the check does not.
        ("cargo test; [ $? -eq 0 ] && echo OK &", 0, "test result: ok. 1 passed", "passed"),
        // Bash continues after a group in which a command of `&&` or `!` failed.
        ("set -e; { cargo test && ls; }; ls", 0, "x", "unknown"),
        ("set -e; { ! cargo test; }; ls", 0, "x", "unknown"),
        // `set -e` has no effect in a part that `if`, or a `||` or `&&` after it, tests.
        ("(set -e; cargo test; ls) || exit 1", 0, "x", "unknown"),
        ("if (set -e; cargo test; ls); then echo y; else echo n; fi", 0, "y", "unknown"),
        ("ls && (set -e; cargo test; ls)", 0, "x", "passed"),
        ("bash -c 'set -e; cargo test; ls' || exit 1", 0, "x", "passed"),
        ("set -o pipefail; cargo test | tail -3", 0, "x", "passed"),
        ("set -euo pipefail\ncargo test | tail -3", 101, "x", "failed"),
        ("bash -eo pipefail -c 'cargo test | tee log'", 0, "x", "passed"),
        ("cargo test | tail -3; echo \"exit ${PIPESTATUS[0]}\"", 0, "x\nexit 101", "failed"),
        ("cargo test | tail -3; echo \"exit ${PIPESTATUS[0]}\"", 0, "x\nexit 0", "passed"),
        ("cargo test; echo \"EXIT: $?\"", 0, "EXIT: 101", "failed"),
        ("cargo test > log 2>&1; echo $?", 0, "0", "passed"),
        ("cargo test > log 2>&1; printf 'exit=%d\\n' $?", 0, "exit=101", "failed"),
        ("cargo test > log 2>&1; printf \"%s tests\\n\" 0", 0, "0 tests", "unknown"),
        ("cargo test | tail -3; echo $pipestatus[1]", 0, "x\n101", "failed"),
        ("cargo test > log 2>&1; rc=$?; tail -3 log; echo rc=$rc", 0, "x\nrc=101", "failed"),
        ("cargo test > log 2>&1; rc=$?; tail -3 log; exit $rc", 101, "x", "failed"),
        ("cargo test | tail; echo \"exit $?\"", 0, "x\nexit 0", "unknown"),
        ("echo 'exit $?'; cargo test; ls", 0, "exit 0", "unknown"),
        ("cargo test -q && echo GOOD || echo BAD", 0, "x\nBAD", "failed"),
        ("cargo test -q && echo GOOD || echo BAD", 0, "x\nGOOD", "passed"),
        ("cargo test || echo BAD", 0, "x\nBAD", "unknown"),
        ("cargo test || echo BAD", 0, "x", "passed"),
        ("for p in a b; do cargo test -p $p; done", 101, "", "failed"),
        ("for p in a b; do cargo test -p $p || exit 1; done", 1, "", "failed"),
        // The `exit` in the condition may have ended the line before the check.
        ("while test -e up || exit 1; do ls; done; cargo test", 1, "", "unknown"),
        ("while test -e up || exit 1; do ls; done; cargo test", 0, "", "passed"),
    ] {
        assert_eq!(status(line, code, output), expected, "{line} {code} {output}");
    }
}

#[test]
fn every_check_of_a_list_has_its_own_status() {
    for (line, code, output, expected) in [
        ("cargo fmt --check && cargo test", 0, "", "1:passed 2:passed"),
        ("cargo clippy && cargo test", 101, "x", "1:unknown 2:unknown"),
        (
            "cargo clippy && cargo test",
            101,
            "test result: FAILED. 1 passed; 1 failed",
            "1:passed 2:failed",
        ),
        ("ruff check . && pytest", 1, "Found 3 errors.", "1:failed"),
        ("ruff check . && pytest", 1, "All checks passed!\nx", "1:passed 2:failed"),
        ("ruff check .; pytest", 0, "Found 3 errors.\n=== 3 passed in 1s ===", "1:failed 2:passed"),
        ("npm run lint; npm test", 1, "", "1:unknown 2:failed"),
        ("cargo clippy || cargo test", 101, "", "1:failed 2:failed"),
        ("mypy a && pytest | tail -3", 0, "=== 1 failed in 1s ===", "1:passed 2:failed"),
        ("mypy a && pytest | tail -3", 0, "x", "1:passed 2:unknown"),
        ("mypy a || pytest", 0, "Success: no issues found in 3 source files", "1:passed"),
        // Which of the two printed it is not known.
        (
            "pytest a; pytest b; ls",
            0,
            "=== 1 failed in 1s ===\n=== 1 passed in 1s ===",
            "1:unknown 2:unknown",
        ),
        (
            "pytest a; pytest b; ls",
            0,
            "=== 2 passed in 1s ===\n=== 1 passed in 1s ===",
            "1:passed 2:passed",
        ),
        ("pytest a; pytest b; ls", 0, "=== 2 passed in 1s ===", "1:unknown 2:unknown"),
        // Jest prints two lines for one run.
        (
            "npm run lint; npm run test",
            0,
            "Test Suites: 1 passed, 1 total\nTests:       2 passed, 2 total",
            "1:unknown 2:passed",
        ),
        ("cargo clippy; cargo test; ls", 0, "error: could not compile `a`", "1:unknown 2:unknown"),
        // A command between a check and the `exit` with its code can end the line itself.
        ("cargo test; s=$?; cargo clippy || exit 1; exit $s", 1, "x", "1:unknown 2:unknown"),
        ("cargo test; s=$?; cargo clippy || exit 1; exit $s", 0, "x", "1:passed 2:passed"),
        ("set -e; cargo test; s=$?; cargo clippy; exit $s", 101, "x", "1:unknown 2:unknown"),
        // A check that passed in the last round of a loop may have failed before.
        (
            "for p in a b; do cargo clippy && cargo test; done",
            101,
            "test result: FAILED. 1 passed; 1 failed",
            "1:unknown 2:failed",
        ),
        ("for p in a b; do if cargo test; then exit 3; fi; done", 3, "x", "1:unknown"),
        // `case` as an argument begins no `case` statement.
        ("case $1 in a) echo case studies in use;; esac; cargo test", 0, "x", "1:passed"),
        // An `exit` ends the loop, so no command failed in earlier rounds.
        (
            "for p in a b; do cargo clippy -p $p || exit 1; cargo test -p $p || exit 1; done",
            1,
            "test result: FAILED. 1 passed; 1 failed",
            "1:passed 2:failed",
        ),
        // An `exit` with the saved code has the exit code of the check.
        (
            "cargo test; s=$?; if [ $s -ne 0 ]; then tail log; exit $s; fi; rm log; exit $s",
            101,
            "x",
            "1:failed",
        ),
        ("cargo test; s=$?; [ $s -ne 0 ] && exit $s; ls; exit $s", 0, "x", "1:passed"),
        // The output contains the character that an escape stands for, not the escape.
        ("cargo test || echo $'\\e[31mfailed\\e[0m'", 0, "failed", "1:unknown"),
        ("cargo test || echo $'a\\nb'", 0, "a\nb", "1:unknown"),
        ("cargo test || echo 'a\nb'", 0, "a\nb", "1:unknown"),
        ("cargo test || Write-Host BAD -ForegroundColor Red", 0, "x\nBAD", "1:unknown"),
        ("cargo test || Write-Output a BAD", 0, "x\na\nBAD", "1:unknown"),
        // The shell prints the option too.
        ("cargo test || echo -e BAD", 0, "x\n-e BAD", "1:unknown"),
        ("cargo test || echo -e BAD", 0, "x", "1:passed"),
        // In some shells, `echo` replaces an escape.
        (r#"cargo test || echo "\nBAD""#, 0, "x\n\nBAD", "1:unknown"),
    ] {
        assert_eq!(ended(line, "finished", Some(code), output), expected, "{line} {code} {output}");
    }
    assert_eq!(ended("make build && make test", "timed_out", None, ""), "1:unknown 2:unknown");
}

#[test]
fn a_printed_exit_code_is_assigned_to_the_echo_that_printed_it() {
    let red = "test result: FAILED. 1 passed; 1 failed";
    let two = "cargo test; echo \"exit $?\"; cargo clippy; echo \"exit $?\"";
    for (line, output, expected) in [
        (two, "x\nexit 101\nexit 0", "1:failed 2:passed"),
        (two, "exit 0\nexit 101", "1:passed 2:failed"),
        (&format!("{two}; ls"), "exit 0\nexit 101", "1:passed 2:failed"),
        // There is one line more than the echoes print, or one less.
        (&format!("{two}; ls"), "exit 0\nexit 0\nexit 101", "1:unknown 2:unknown"),
        (&format!("{two}; ls"), "exit 0", "1:unknown 2:unknown"),
        ("cargo test; echo $?; ls; echo $?", "101\nx\n0", "1:failed"),
        ("cargo test; echo $?; wc -l < a", "101\n3", "1:unknown"),
        ("cargo test; echo $?; ls", "101\nx", "1:failed"),
        ("wc -l < a; cargo test; echo $?", "3\n101", "1:failed"),
        ("cargo test; echo \"exit $?\"; false || echo \"exit 1\"", "exit 0\nexit 1", "1:unknown"),
        ("for p in a b; do cargo test; echo \"exit $?\"; done", "exit 0", "1:unknown"),
        ("cargo test & echo $?", "0", "1:unknown"),
        ("bash -c 'cargo test; echo e=$?'; mypy a; echo e=$?", "e=1\ne=0", "1:failed 2:passed"),
        (
            "npm run lint > l 2>&1; echo \"exit=$?\"; npm test > t 2>&1; echo \"exit=$?\"",
            "exit=0\nexit=1",
            "1:passed 2:failed",
        ),
        ("out=$(cargo test 2>&1); echo $?; echo \"$out\" | tail -1", "101\nx", "1:failed"),
        ("out=$(cargo test 2>&1); echo \"$out\" | tail -1", red, "1:failed"),
        ("out=$(cargo test 2>&1); echo \"$none\" | tail -1", red, "1:unknown"),
        ("out+=$(cargo test 2>&1); echo \"$out\" | tail -1", red, "1:failed"),
        // A visible failure has priority over a printed code 0.
        ("cargo test; echo \"exit $?\"", &format!("{red}\nexit 0"), "1:unknown"),
        ("cargo test; echo \"exit $?\"", &format!("{red}\nexit 101"), "1:failed"),
        ("(cargo test; echo EXIT $?) 2>&1 | tail -2", "x\nEXIT 101", "1:failed"),
        ("(cargo test; echo EXIT $?) 2>&1 | sed s/101/0/", "x\nEXIT 0", "1:unknown"),
        ("(cargo test; echo EXIT $?) > log", "x\nEXIT 0", "1:unknown"),
        ("cargo test | tail; rc=${PIPESTATUS[0]}; echo rc=$rc", "x\nrc=101", "1:failed"),
        ("cargo test | tail; rc=$?; echo rc=$rc", "x\nrc=0", "1:unknown"),
    ] {
        assert_eq!(ended(line, "finished", Some(0), output), expected, "{line}: {output}");
    }
    for (line, code, expected) in [
        ("cargo test | tail -3; exit ${PIPESTATUS[0]}", 101, "failed"),
        // In zsh, `PIPESTATUS` is empty.
        ("cargo test | tail -3; exit ${PIPESTATUS[0]}", 0, "unknown"),
        ("cargo test | tail -3; rc=${PIPESTATUS[0]}; ls; exit $rc", 101, "failed"),
        ("cargo test | tail -3; exit $?", 101, "unknown"),
    ] {
        assert_eq!(status(line, code, "x"), expected, "{line} {code}");
    }
}

/// Regression: if the output of a check was appended to a variable that held an old log, the lines
/// of the log counted as lines of the check.
#[test]
fn old_text_in_the_variable_that_output_is_appended_to_gives_no_verdict() {
    let red = "test result: FAILED. 1 passed; 1 failed";
    let appended = "out+=$(cargo test 2>&1); echo \"$out\" | tail -1";
    for (before, expected) in [
        ("out=$(cat old.log); ", "unknown"),
        ("out=text; ", "unknown"),
        ("out=$(cat old.log) more=; ", "unknown"),
        ("out=$(cat old.log); true && out=; ", "unknown"),
        ("out=; ", "failed"),
        ("out=$(cat old.log); out=; ", "failed"),
        ("other=$(cat old.log); ", "failed"),
    ] {
        assert_eq!(status(&format!("{before}{appended}"), 0, red), expected, "{before}");
    }
}

/// Regression: if the output of a check was appended to a file, the earlier lines of the file
/// counted as lines of the check.
#[test]
fn output_that_is_appended_to_an_older_file_is_not_told_from_it() {
    let red = "test result: FAILED. 1 passed; 1 failed";
    for (line, expected) in [
        ("cargo test > log 2>&1; tail log", "failed"),
        ("cargo test >> log 2>&1; tail log", "unknown"),
        ("cargo test &>> log; tail log", "unknown"),
        ("{ cargo test; } >> log; tail log", "unknown"),
        ("bash -c 'cargo test' >> log; tail log", "unknown"),
        ("ls > log; cargo test >> log; tail log", "unknown"),
        ("ls && > log; cargo test >> log; tail log", "unknown"),
        // The line itself began the file.
        ("> log; cargo test >> log; tail log", "failed"),
        ("echo tests > ./log; cargo test >> log; tail log", "failed"),
        ("rm -f log; cargo test >> log; tail log", "failed"),
        ("rm -f log; bash -c 'cargo test' >> log; tail log", "failed"),
    ] {
        assert_eq!(status(line, 0, red), expected, "{line}");
    }
    let both = "cargo clippy > log 2>&1; cargo test >> log 2>&1; tail log";
    assert_eq!(ended(both, "finished", Some(0), red), "1:unknown 2:failed");
    let tested =
        "cargo clippy > log 2>&1; if [ $? -ne 0 ]; then exit 1; fi; cargo test >> log; tail log";
    assert_eq!(ended(tested, "finished", Some(0), red), "1:passed 2:failed");
    assert_eq!(status("cargo test >> log", 101, ""), "failed", "its exit code decides");
}

#[test]
fn a_passed_part_of_a_script_counts_only_if_its_output_is_last() {
    let vitest = " Test Files  1 passed (1)\n      Tests  3 passed (3)\n   Start at  12:00:00";
    for (line, output, expected) in [
        ("npm run ci 2>&1 | tail -6", vitest, "passed"),
        (
            "npm run ci 2>&1 | tail -6",
            &format!("{vitest}\n\n> node size.js\nBundle too large: 300 kB > 250 kB"),
            "unknown",
        ),
        ("./scripts/check.sh 2>&1 | tail", "All checks passed!\nundocumented flag", "unknown"),
        ("bash ci.sh 2>&1 | tail", "BUILD SUCCESSFUL in 3s\nsmoke test failed", "unknown"),
        ("bash ci.sh | tail", "BUILD SUCCESSFUL in 3s\n3 actionable tasks: 3 executed", "passed"),
        (
            "make ci | tail",
            "    Finished `dev` profile [x] target(s) in 1.20s\ncargo test",
            "unknown",
        ),
        ("make ci | tail; echo done", "=== 3 passed in 1s ===\ndone", "passed"),
        (
            "bash ci.sh | tail",
            "BUILD SUCCESSFUL in 3s\nConfiguration cache entry stored.",
            "passed",
        ),
        (
            "nx test a | tail",
            " NX   Successfully ran target test for project a\n\nNx read the output from the cache instead",
            "passed",
        ),
        (
            "npm test | tail",
            "Test Suites: 1 passed, 1 total\nForce exiting Jest: Have you",
            "passed",
        ),
        ("rake spec | tail", "3 examples, 0 failures\nLine Coverage: 83.33% (100 / 120)", "passed"),
        // A failure counts wherever it is.
        ("make ci | tail; ls", "=== 1 failed in 1s ===\nAll checks passed!\na", "failed"),
        (
            "npm test | tail -5",
            "Test Suites: 1 passed, 1 total\nTests: 1 passed, 1 total",
            "passed",
        ),
    ] {
        assert_eq!(status(line, 0, output), expected, "{line}: {output}");
    }
}

#[test]
fn a_summary_does_not_hide_another_failure() {
    let vitest = " Test Files  2 passed (2)\n      Tests  3 passed (3)\n";
    let low = "ERROR: Coverage for lines (50%) does not meet global threshold (80%)";
    let table = "TOTAL     10   5   50%\n3 passed in 0.1s";
    for (line, output, expected) in [
        (
            "npx eslint . --max-warnings 0 | tail -5",
            "✖ 1 problem (0 errors, 1 warning)\n\nESLint found too many warnings (maximum: 0).",
            "failed",
        ),
        ("npx eslint . --max-warnings 0 | head -1", "✖ 1 problem (0 errors, 1 warning)", "unknown"),
        ("npx eslint . | tail -1", "✖ 1 problem (0 errors, 1 warning)", "passed"),
        ("npx eslint . --max-warnings 0 | tail -5", "", "passed"),
        ("npx vitest run --coverage 2>&1 | tail -4", &format!("{vitest}\n{low}"), "failed"),
        ("npx vitest run --coverage 2>&1 | tail -2", vitest, "unknown"),
        ("npx vitest run 2>&1 | tail -2", vitest, "passed"),
        ("npx vitest run 2>/dev/null | tail -2", vitest, "unknown"),
        ("npx vitest run | grep Tests", "      Tests  3 passed (3)", "unknown"),
        ("npm test | tail -3", low, "failed"),
        ("pytest --cov=a --cov-fail-under=80 | tail -1", "3 passed in 0.10s", "unknown"),
        ("pytest --cov=a | tail -1", "3 passed in 0.10s", "unknown"),
        ("pytest --cov=a | tail -2", table, "passed"),
        ("pytest --cov=a --cov-fail-under=80 | tail -2", table, "unknown"),
        (
            "pytest --cov=a --cov-fail-under=80 | tail -2",
            "Required test coverage of 80% reached. Total coverage: 91.00%\n3 passed in 0.10s",
            "passed",
        ),
        (
            "pytest --cov=a --cov-fail-under=80 | tail -2",
            "FAIL Required test coverage of 80% not reached.\n3 passed in 0.10s",
            "failed",
        ),
        ("npx jest 2>&1 | grep 'Tests:'", "Tests:       3 passed, 3 total", "unknown"),
        ("npx jest 2>&1 | grep -E 'Tests:|Suites:'", "Test Suites: 1 passed, 1 total", "passed"),
        (
            "prettier --check . 2>&1 | tail -2",
            "[error] a.ts: SyntaxError: x\nAll matched files use Prettier code style!",
            "failed",
        ),
        (
            "prettier --check . 2>&1 | tail -1",
            "All matched files use Prettier code style!",
            "unknown",
        ),
        (
            "prettier --check . 2>&1 | tail",
            "Checking formatting...\nAll matched files use Prettier code style!",
            "passed",
        ),
        (
            "ruff format --check . 2>&1 | tail -2",
            "error: Failed to parse a.py:1:5: x\n2 files already formatted",
            "failed",
        ),
        ("ruff format --check . 2>&1 | tail -1", "2 files already formatted", "unknown"),
        (
            "bundle exec rspec | tail -3",
            "3 examples, 0 failures\n\nSimpleCov failed with exit 2 due to a coverage error",
            "failed",
        ),
        (
            "rails test | tail -2",
            "3 runs, 5 assertions, 0 failures, 0 errors, 0 skips\nLine coverage (70.00%) is below \
             the expected minimum coverage (90.00%).",
            "failed",
        ),
        ("rspec | tail -1", "3 examples, 0 failures", "passed"),
        ("rspec | head -1", "3 examples, 0 failures", "unknown"),
        (
            "mix test --warnings-as-errors | tail -3",
            "3 tests, 0 failures\n\nERROR! Test suite aborted after successful execution",
            "failed",
        ),
        ("oxlint --deny-warnings | tail -1", "Found 2 warnings and 0 errors.", "unknown"),
        ("oxlint --deny-warnings | tail -1", "Found 0 warnings and 0 errors.", "passed"),
    ] {
        assert_eq!(status(line, 0, output), expected, "{line}: {output}");
    }
}

/// Regression: a summary counted as a pass although one of its other counts told a failure, or a
/// line that was not shown could.
#[test]
fn a_count_beside_the_failures_can_tell_a_failure() {
    for (line, output, expected) in [
        ("mix test | tail -2", "3 tests, 0 failures, 3 invalid", "failed"),
        ("mix test | tail -2", "3 tests, 0 failures, 1 excluded", "passed"),
        // A module or a suite that could not be set up has no failed tests.
        ("deno test | tail -1", "FAILED | 3 passed | 0 failed (10ms)", "failed"),
        ("ginkgo | tail -1", "FAIL! -- 0 Passed | 0 Failed | 0 Pending | 3 Skipped", "failed"),
        // Warnings count too.
        ("ty check | tail -1", "Found 1 diagnostic", "unknown"),
        ("ty check | tail", "error[unresolved-import]: x\nFound 1 diagnostic", "failed"),
        ("vendor/bin/phpunit | tail -1", "Tests: 3, Assertions: 3, Warnings: 1.", "unknown"),
        ("phpunit | tail -1", "Tests: 3, Assertions: 3, Warnings: 1, Failures: 1.", "failed"),
        ("phpunit | tail -1", "Tests: 3, Assertions: 3, Errors: 2.", "failed"),
        ("phpunit | tail -1", "Tests: 3, Assertions: 3, Skipped: 1.", "passed"),
        ("pest | tail -1", "  Tests:    1 warning, 1 failed, 2 passed (5 assertions)", "failed"),
        ("pest | tail -1", "  Tests:    2 failed (5 assertions)", "failed"),
        (
            "karma start --single-run | tail -2",
            "A: Executed 1 of 3 SUCCESS (0.1 secs)\nA: Executed 1 of 3 DISCONNECTED (30 secs)",
            "failed",
        ),
        (
            "cargo nextest run | tail -1",
            "     Summary [   0.1s] 3/5 tests run: 3 passed, 0 skipped",
            "unknown",
        ),
        (
            "cargo nextest run | tail -1",
            "     Summary [   0.1s] 3/5 tests run: 2 passed (1 slow), 1 timed out, 0 skipped",
            "failed",
        ),
        (
            "cargo nextest run | tail -1",
            "     Summary [   0.1s] 3 tests run: 3 passed (1 flaky), 2 skipped",
            "passed",
        ),
        ("ruff check . | tail -1", "[*] 3 fixable with the `--fix` option.", "failed"),
        ("cargo check --message-format short | head -1", "a.rs:3:5: error[E0308]: x", "failed"),
        ("cargo build --message-format short | head -1", "a.rs:3:5: error: x", "failed"),
        // The filter would leave out that too little of the code is covered.
        ("npx jest --coverage | grep Test", "Test Suites: 5 passed, 5 total", "unknown"),
        ("npx jest --coverage | grep -E 'Test|thresh'", "Test Suites: 5 passed, 5 total", "passed"),
        ("pytest --cov | grep -E 'passed|failed'", "=== 3 passed in 0.1s ===", "unknown"),
        ("deno test --coverage | grep passed", "ok | 3 passed | 0 failed (5ms)", "passed"),
        // Jest was stopped before the other suites, or skipped them.
        ("npx jest | tail -1", "Test Suites: 1 passed, 1 of 3 total", "unknown"),
        (
            "npx jest || true",
            "Test Suites: 1 passed, 1 of 3 total\nTests:       2 passed, 2 total",
            "unknown",
        ),
        ("npx jest | tail -1", "Test Suites: 2 skipped, 1 passed, 1 of 3 total", "passed"),
        ("pytest -q | tail -1", "1 subtests failed, 2 passed in 0.10s", "failed"),
        ("node --test | grep -E '^# (pass|fail)'", "# pass 3\n# fail 0", "unknown"),
        ("node --test | tail -3", "# fail 0\n# cancelled 0\n# todo 0", "passed"),
        ("node --test | tail -3", "# fail 0\n# cancelled 1\n# todo 0", "failed"),
        ("meson test -C b | grep Fail", "Fail:               0", "unknown"),
        // The rating of pylint is rounded.
        ("pylint a | tail -1", "Your code has been rated at 10.00/10", "unknown"),
        ("pyright --warnings | tail -1", "0 errors, 1 warning, 0 informations", "unknown"),
        ("pyright | tail -1", "0 errors, 1 warning, 0 informations", "passed"),
        ("dotnet test | grep 'Test sum'", "Test summary: total: 3, failed: 0", "unknown"),
    ] {
        assert_eq!(status(line, 0, output), expected, "{line}: {output}");
    }
}

#[test]
fn the_last_lines_of_more_tools_tell_their_verdict() {
    for (line, output, expected) in [
        ("tape t.js | tail -2", "# pass  2\n# fail  1", "failed"),
        (
            "cargo test | tail -2",
            "Caused by:\n  process didn't exit successfully: `a` (signal: 6, SIGABRT)",
            "failed",
        ),
        ("dotnet build | tail -3", "    1 Error(s)\n\nTime Elapsed 00:00:01.23", "failed"),
        ("ctest --test-dir b | tail -1", "Errors while running CTest", "failed"),
        ("ng test | tail -1", "TOTAL: 1 FAILED, 2 SUCCESS", "failed"),
        (
            "xcodebuild test | xcpretty",
            "Executed 3 tests, with 1 failure (0 unexpected) in 0.010 (0.012) seconds",
            "failed",
        ),
        ("make check | tail -2", "# FAIL:  1\n# XPASS: 0", "failed"),
        ("make check | tail -2", "# FAIL:  0\n# XPASS: 0", "unknown"),
        // Regression: lines of other programs and corrected offenses were failures.
        ("make test | tail -2", "PASSED: 12\nFAILED: 0", "unknown"),
        ("ninja | tail -2", "FAILED: [code=1] a.dir/a.cpp.o\nc++ -c a.cpp", "failed"),
        ("npm test | tail -1", "error - unhandledRejection: x", "unknown"),
        (
            "dart analyze | head -1",
            "  error - lib/a.dart:3:7 - Undefined b. - undefined_b",
            "failed",
        ),
        (
            "rubocop -a | tail -1",
            "3 files inspected, 2 offenses detected, 2 offenses corrected",
            "unknown",
        ),
        (
            "rubocop | tail -1",
            "3 files inspected, 2 offenses detected, 1 offense autocorrectable",
            "failed",
        ),
        ("make lint | tail -1", "Found 2 errors (2 fixed, 0 remaining).", "passed"),
        ("deno fmt --check | tail -1", "error: Found 1 not formatted file in 3 files", "failed"),
        ("golangci-lint run | tail -1", "a.go:12: line is 130 characters (lll)", "failed"),
        ("golangci-lint run | tail -1", "a.go:1: File is not `gofmt`-ed (gofmt)", "failed"),
        ("golangci-lint run | tail -1", "a.go:1:2: see open(name)", "unknown"),
        ("dart analyze | head -1", "  error • Bad key • pubspec.yaml:3:1 • bad", "failed"),
        ("make test | tail", "a.go:4: closing (graceful)\nok  \ta\t0.1s", "passed"),
        ("make test | tail -1", "Waiting for the database....Failed", "unknown"),
        ("make test | tail -1", "FAILED (failures=1)", "failed"),
        ("nosetests | tail -1", "OK (SKIP=1)", "passed"),
        ("nosetests | tail -1", "FAILED (SKIP=1, failures=1)", "failed"),
        ("npx playwright test | tail", "  3 passed (1.1h)", "passed"),
        // Older versions of pytest
        ("pytest | tail -1", "=== 3 passed, 1 warnings in 0.12 seconds ===", "passed"),
        ("pytest | tail -1", "=== 1 failed, 3 passed in 0.12 seconds ===", "failed"),
        // An error that make ignores is none.
        ("make test | tail -1", "make: *** [Makefile:3: test] Error 1 (ignored)", "unknown"),
        ("mvn test | tail -1", "[ERROR] Failed to execute goal a:b:3:test: x", "failed"),
        (
            "mvn test | grep -E 'Tests run|BUILD'",
            "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0\n[INFO] BUILD SUCCESS",
            "passed",
        ),
        ("./gradlew test | grep BUILD", "BUILD SUCCESSFUL in 3s", "passed"),
        ("./gradlew test | grep SUCCESS", "BUILD SUCCESSFUL in 3s", "unknown"),
        (
            "mvn test | grep 'Tests run'",
            "Tests run: 3, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.1 s <<< FAILURE!",
            "failed",
        ),
        ("rubocop | tail", "3 files inspected, no offenses detected\n1 error occurred:", "failed"),
        ("helm lint . | tail -1", "Error: 1 chart(s) linted, 1 chart(s) failed", "failed"),
        ("bazel test //... | tail -1", "Executed 0 out of 2 tests: 2 tests pass.", "passed"),
        ("ninja test | tail -1", "ninja: build stopped: subcommand failed.", "failed"),
        ("pnpm -r test | tail -1", " ERR_PNPM_RECURSIVE_RUN_FIRST_FAIL  web@1 test: `x`", "failed"),
        ("cargo make test | tail -1", "[cargo-make] ERROR - Error while executing", "failed"),
        ("tap | tail -5", "Bail out! no database", "failed"),
        ("dotnet build | tail -1", "Build failed with 1 error(s) in 3.2s", "failed"),
        ("dotnet build | tail -1", "Build succeeded with 2 warning(s) in 3.2s", "passed"),
        ("dotnet test | tail -1", "Build failed with 1 error(s) in 3.2s", "failed"),
        ("dotnet test | tail", "Test run summary: Failed! - a.dll\n  failed: 1", "failed"),
        ("dotnet test | tail", "Test run summary: Passed! - a.dll\n  failed: 0", "passed"),
        ("xcodebuild test | tail -1", "** TEST BUILD FAILED **", "failed"),
        ("dart test | tail -1", "00:01 +3 ~1: All other tests passed!", "passed"),
        ("sbt test | tail -1", "[error] Total time: 3 s, completed May 1, 2026", "failed"),
        ("cabal test | tail -1", "0 of 1 test suites (0 of 1 test cases) passed.", "failed"),
        ("cabal test | tail -1", "1 of 2 test suites (1 of 2 test cases) passed.", "unknown"),
        ("stack test | tail -1", "3 examples, 1 failure", "failed"),
        ("gleam test | tail -1", "3 passed, no failures", "passed"),
        ("nx run-many -t test | tail", " NX   Running target test for 2 projects failed", "failed"),
        ("black --check . | tail -1", "1 file would fail to reformat.", "failed"),
        ("cmake --build b | tail -1", "make: *** [Makefile:1: all] Error 2", "failed"),
        ("make test | tail -1", "make: *** [a] Segmentation fault (core dumped)", "failed"),
    ] {
        assert_eq!(status(line, 0, output), expected, "{line}: {output}");
    }
}

/// Regression: the exit code 0 of a runner that only starts the check was a pass.
#[test]
fn a_check_that_its_runner_does_not_wait_for_is_unknown() {
    for line in [
        "docker run -d img pytest",
        "docker run --rm -dit --name x img npx tsc --noEmit",
        "docker exec --detach web pytest",
        "docker compose run -d web pytest",
        "docker compose exec --detach=true web sh -c 'pytest'",
        "podman run -d img pytest",
        "setsid -f cargo test",
        "ssh -fn -p 22 host cargo test",
        "sudo -b bash -c 'cargo test'",
        "systemd-run --user cargo test",
    ] {
        assert_eq!(status(line, 0, ""), "unknown", "{line}");
        assert_eq!(status(line, 1, "x"), "unknown", "{line}");
    }
    for line in [
        "docker run --rm -it -e DEBUG=d -v /a:/d -udjango img pytest -d",
        "docker compose exec -T web pytest",
        "setsid cargo test",
        "ssh -p 22 host pytest -f",
        "sudo -u bob cargo test -- -b",
    ] {
        assert_eq!(status(line, 0, ""), "passed", "{line}");
    }
}

/// Regression: with an option by which the tool exits with 0 whatever it finds, the exit code 0
/// counted as a pass.
#[test]
fn an_exit_code_that_an_option_fixes_proves_no_pass() {
    let maven = "[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0\n[INFO] BUILD SUCCESS";
    for (line, code, output, expected) in [
        ("ruff check --exit-zero .", 0, "Found 3 errors.", "failed"),
        ("ruff check --exit-zero .", 0, "All checks passed!", "passed"),
        ("ruff check --exit-zero .", 2, "x", "error"),
        ("flake8 --exit-zero", 0, "./a.py:3:1: F401 'os' imported but unused", "failed"),
        ("flake8 --exit-zero", 0, "", "passed"),
        ("bandit --exit-zero -r a", 0, "x", "unknown"),
        ("golangci-lint run --issues-exit-code=0", 0, "1 issues:", "failed"),
        ("golangci-lint run --issues-exit-code 0", 0, "1 issues:", "failed"),
        ("golangci-lint run --issues-exit-code 3", 0, "x", "passed"),
        ("rspec --failure-exit-code 0", 0, "3 examples, 1 failure", "failed"),
        ("robot --nostatusrc t", 0, "3 tests, 2 passed, 1 failed", "failed"),
        ("hadolint --no-fail Dockerfile", 0, "Dockerfile:3 DL3008 error: Pin", "failed"),
        ("ruff check --fix-only", 0, "Fixed 2 errors.", "unknown"),
        ("knip --no-exit-code", 0, "Unused files (1)", "unknown"),
        ("vale --no-exit .", 0, "x", "unknown"),
        ("npx mocha --no-exit", 0, "x", "passed"),
        ("sqlfluff lint --nofail a", 0, "x", "unknown"),
        ("checkov -d . --soft-fail", 0, "x", "unknown"),
        ("tflint --force", 0, "x", "unknown"),
        ("gosec -no-fail ./...", 0, "x", "unknown"),
        ("gosec ./...", 0, "x", "passed"),
        ("govulncheck -json ./...", 0, "{}", "unknown"),
        ("govulncheck -format=sarif ./...", 0, "{}", "unknown"),
        ("govulncheck -format text ./...", 0, "No vulnerabilities found.", "passed"),
        ("brakeman --no-exit-on-warn", 0, "x", "unknown"),
        ("mix credo --mute-exit-status", 0, "x", "unknown"),
        ("mix test --exit-status 0", 0, "3 tests, 1 failure", "failed"),
        ("mix test --exit-status 3", 0, "x", "passed"),
        ("cfn-lint --non-zero-exit-code none a.yml", 0, "x", "unknown"),
        ("phpcs --runtime-set ignore_errors_on_exit 1 a", 0, "x", "unknown"),
        ("swiftformat --lint --lenient .", 0, "x", "unknown"),
        // `script` of Linux ends with 0, unless it has `-e`.
        ("script -qc 'cargo test' /dev/null", 0, "x", "unknown"),
        ("script -q -c pytest log", 0, "=== 1 failed, 2 passed in 0.10s ===", "failed"),
        ("script -q -c pytest log", 0, "=== 3 passed in 0.10s ===", "passed"),
        ("script -qec 'cargo test' /dev/null", 0, "x", "passed"),
        ("script -q /dev/null cargo test", 0, "x", "passed"),
        ("make -i test", 0, "=== 1 failed, 2 passed in 0.10s ===", "failed"),
        ("make -ki test", 0, "x", "unknown"),
        ("make -Cinner test", 0, "x", "passed"),
        ("mvn test -Dmaven.test.failure.ignore=true", 0, maven, "failed"),
        ("mvn -fn test", 0, "x", "unknown"),
        ("mvn -fn test | tail -1", 0, "[INFO] BUILD SUCCESS", "unknown"),
        ("mvn test -Dmaven.test.failure.ignore=false", 0, "x", "passed"),
    ] {
        assert_eq!(status(line, code, output), expected, "{line} {code} {output}");
    }
}

#[test]
fn the_output_of_another_program_gives_no_verdict_on_a_check() {
    let green = "test result: ok. 1 passed";
    let red = "test result: FAILED. 1 passed; 1 failed";
    for (line, output, expected) in [
        ("cat old.log; cargo test 2>&1 | tail -1", format!("{red}\n{green}"), "passed"),
        ("cat old.log; cargo test 2>&1 | tail -1", format!("{green}\n{red}"), "failed"),
        ("cat old.log; cargo test; ls", format!("{red}\n{green}"), "unknown"),
        ("cargo test | tail -1; cat old.log", format!("{green}\n{red}"), "unknown"),
        ("tail -5 ../b/test.log; make test | tail -1", format!("{red}\nok"), "unknown"),
        ("grep -r FAILED .; npx tsc | tail -1", "a.ts(3,7): error TS2322: x".to_owned(), "unknown"),
        ("git show HEAD:log; cargo test; ls", red.to_owned(), "unknown"),
        ("docker logs web; pytest; ls", "=== 1 failed in 1s ===".to_owned(), "unknown"),
        ("fly logs; pytest; ls", "=== 1 failed in 1s ===".to_owned(), "unknown"),
        ("cat < old.log; pytest; ls", "=== 1 failed in 1s ===".to_owned(), "unknown"),
        ("nl old.log; pytest; ls", "=== 1 failed in 1s ===".to_owned(), "unknown"),
        (
            "cat old.log; echo '--- test'; cargo test | tail; ls",
            format!("{red}\n--- test\n{green}\na"),
            "passed",
        ),
        ("cargo test | tail; echo ---; cat old.log", format!("{green}\n---\n{red}"), "passed"),
        // The marker occurs twice in the output.
        (
            "cat old.log; echo ---; cargo test | cat; ls",
            format!("{red}\n---\n---\n{green}"),
            "unknown",
        ),
        ("cargo test > o.txt 2>&1; tail -1 old.txt", green.to_owned(), "unknown"),
        ("cargo test > o.txt 2>&1; tail -1 ./o.txt", green.to_owned(), "passed"),
        ("cargo test > o.txt 2>&1; tail -1 o.txt; cat b", format!("{green}\n{red}"), "unknown"),
        ("cargo test > o.txt 2>&1; cat b; tail -1 o.txt", format!("{red}\n{green}"), "passed"),
        ("cargo test | tee o.txt | tail -1; grep x o.txt", green.to_owned(), "passed"),
        ("{ cargo test; } > o.txt 2>&1; cat old.txt", red.to_owned(), "unknown"),
        ("ls | head -3; cargo test | tail -1; git status", green.to_owned(), "passed"),
        ("sed -i s/a/b/ x; cargo test | tail -1; git status", green.to_owned(), "passed"),
    ] {
        assert_eq!(status(line, 0, &output), expected, "{line}: {output}");
    }
}

#[test]
fn a_check_that_its_runner_could_not_start_is_an_error() {
    for (line, code, output, expected) in [
        ("python3 -m pytest -q", 1, "/usr/bin/python3: No module named pytest", "error"),
        ("python3 -m pytest -q | tail", 0, "/usr/bin/python3: No module named pytest", "error"),
        ("python3 -m pytest -q", 1, "E  ModuleNotFoundError: No module named 'a'", "failed"),
        ("ssh host 'cd /srv && pytest -q'", 255, "ssh: connect to host host port 22: x", "error"),
        ("ssh host pytest", 255, "=== 1 failed in 1s ===", "failed"),
        ("ssh host pytest", 1, "x", "failed"),
        ("docker run --rm img pytest", 125, "docker: Error response from daemon: x", "error"),
        ("docker compose exec web pytest", 1, "service \"web\" is not running", "error"),
        ("npm test", 1, "npm error Missing script: \"test\"", "error"),
        ("npm test", 1, "> a\nnpm error Missing script: \"inner\"", "failed"),
        ("make test", 2, "make: *** No rule to make target 'test'.  Stop.", "error"),
        ("make test | tail", 0, "make: *** [Makefile:3: test] Fehler 1", "failed"),
        (
            "make test",
            2,
            "make: *** No rule to make target 'a.c', needed by 'test'.  Stop.",
            "failed",
        ),
        ("make -C sub test", 2, "make: *** sub: No such file or directory.  Stop.", "error"),
        ("nix develop -c cargo test", 1, "error: getting status of '/w/flake.nix': x", "error"),
        ("bun test", 1, "error: 0 test files matching **{.test,.spec}.ts in --cwd=\"/w\"", "error"),
        ("timeout 10x pytest", 125, "timeout: invalid time interval '10x'", "error"),
        ("poetry run pytest", 1, "Command not found: pytest", "error"),
        ("pytest || exit 1", 1, "bash: line 1: pytest: command not found", "error"),
        ("pytest && echo OK || echo BAD", 0, "bash: pytest: command not found\nBAD", "error"),
        ("cargo test | tail -3", 0, "zsh: command not found: cargo", "error"),
        ("npx jest | tail -3", 0, "sh: 1: jest: not found", "error"),
        ("./gradlew test | tail -3", 0, "bash: ./gradlew: Permission denied", "error"),
        ("./scripts/test.sh", 1, "./scripts/test.sh: line 3: foo: command not found", "failed"),
        // The program ran, and could not run another one.
        ("make test", 2, "/bin/sh: 1: bin/test: Permission denied\nmake: *** Error 126", "failed"),
        ("uv run pytest", 2, "error: Failed to spawn: `pytest`", "error"),
        ("cargo nextest run", 101, "error: no such command: `nextest`", "error"),
        ("cargo test", 101, "error: could not find `Cargo.toml` in `/w` or any parent", "error"),
        ("cargo clippy", 101, "error: could not find `Cargo.toml` in `/w` or any parent", "error"),
        ("cargo test", 101, "error: failed to parse manifest at `/w/Cargo.toml`", "error"),
        ("cargo test", 101, "error: invalid key\n --> Cargo.toml:3:5\n  |\n3 | x y", "error"),
        ("cargo test", 101, "error: no matching package named `x` found", "error"),
        (
            "cargo test --locked",
            101,
            "error: the lock file /w/Cargo.lock needs to be updated but --locked was passed",
            "error",
        ),
        ("cargo test", 101, "error: failed to run custom build command for `x v1.0.0`", "failed"),
        ("npm ci && cargo +beta test", 1, "error: toolchain 'beta' is not installed", "error"),
        ("yarn jest", 1, "error Command \"jest\" not found.", "error"),
        ("just test", 1, "error: Justfile does not contain recipe `test`", "error"),
        // Regression: `\d` and `\s` in the name were read as classes of characters.
        (
            r"make 'src\data/test'",
            2,
            r"make: *** No rule to make target 'src\data/test'.  Stop.",
            "error",
        ),
        (
            r"npm run 'win\server:test'",
            1,
            r#"npm error Missing script: "win\server:test""#,
            "error",
        ),
        // Regression: docker prints this also if it then downloads the image and runs the check.
        ("docker run a npm test", 1, "Unable to find image 'a:latest' locally\n> jest", "failed"),
        ("docker build .", 1, "ERROR: Cannot connect to the Docker daemon at unix:///x", "error"),
        ("npx tsc", 1, "\n      This is not the tsc command you are looking for\n", "error"),
        ("npx jest", 1, "npm error code ENOTFOUND\nnpm error syscall getaddrinfo", "error"),
        ("npm test", 1, "npm ERR! missing script: test", "error"),
        // Regression: another program of the line or of the test printed the message.
        (
            "npm ci; npm test",
            1,
            "npm error code E404\n\n> jest\nTests: 1 failed, 1 total",
            "failed",
        ),
        ("npm ci && npx jest", 1, "npm error code E404\nnpm error 404 Not Found", "unknown"),
        ("cd a && npx jest", 1, "npm error code E404\nnpm error 404 Not Found", "error"),
        ("pyenv install 3.9 && pytest", 1, "pyenv: version `3.9' is not installed", "unknown"),
        ("node --run test", 1, "Error: Cannot find module './test'", "failed"),
        ("npm test", 1, "> jest\nxcrun: error: invalid active developer path\na\nb\nc", "failed"),
        ("lein test", 1, "Exception in thread \"main\" java.io.FileNotFoundException: x", "failed"),
        ("node --run test", 1, "Missing script: \"test\" for /w/package.json", "error"),
        ("node node_modules/.bin/jest", 1, "Error: Cannot find module '/w/a/.bin/jest'", "error"),
        ("uv run pytest", 2, "error: Failed to initialize cache at `/x`", "error"),
        ("uv run ruff format --check", 2, "error: Failed to parse a.py:1:5: x", "failed"),
        ("uv run make test", 2, "error: failed to read `/w/Cargo.toml`\nmake: x", "failed"),
        ("./gradlew test", 1, "ERROR: JAVA_HOME is not set and no 'java' command", "error"),
        ("bundle exec rspec", 7, "Could not find rake-13.0 in locally installed gems", "error"),
        ("php artisan test", 1, "Could not open input file: artisan", "error"),
        ("swift test", 1, "xcrun: error: invalid active developer path (/x)", "error"),
        ("go test ./...", 1, "go: go.mod requires go >= 1.25 (running go 1.22.1)", "error"),
        ("go test ./x", 1, "no required module provides package x; to add it:", "error"),
        (
            "cargo test -F x",
            101,
            "error: the package 'a' does not contain this feature: x",
            "error",
        ),
        ("rake test", 1, "rake aborted!\nNo Rakefile found (looking for: rakefile)", "error"),
        (
            "gradle test",
            1,
            "FAILURE: Build failed with an exception.\n\n* What went wrong:\n\
             Directory '/w' does not contain a Gradle build.",
            "error",
        ),
        ("flutter test", 1, "Test directory \"test\" not found.", "error"),
        ("npm test -w x", 1, "npm error No workspaces found:\nnpm error   --workspace=x", "error"),
        ("npx jest", 1, "● Validation Error:\n\n  Module ts-jest was not found.", "error"),
        ("npx vitest run", 1, "failed to load config from /w/vitest.config.ts", "error"),
        ("mypy x", 2, "mypy: can't read file 'x': No such file or directory", "error"),
        ("ruff check", 2, "ruff failed\n  Cause: Failed to parse /w/ruff.toml", "error"),
        (
            "pre-commit run",
            1,
            "An error has occurred: InvalidConfigError: \n=====> .pre-commit-config.yaml is not a file",
            "error",
        ),
        ("nox -s x", 1, "nox > Error while collecting sessions.", "error"),
        // The names of what is missing are in other languages and other forms.
        ("make test", 2, "make: *** Keine Regel, um „test“ zu erstellen.  Schluss.", "error"),
        ("make test", 2, "make: *** Keine Regel, um „a.c“, benötigt von „test“, zu x.", "failed"),
        ("make test", 2, "make: *** 没有规则可制作目标“test”。 停止。", "error"),
        // Regression: make removes the target of a recipe that failed.
        (
            "make lint",
            2,
            "make: *** [Makefile:2: lint] Error 1\nmake: *** Deleting file 'lint'",
            "failed",
        ),
        ("pytest | tail", 0, "bash: ligne 1 : pytest : commande introuvable", "error"),
        ("pytest | tail", 0, "(eval):1: command not found: pytest", "error"),
        ("env A=1 pytest | tail", 0, "env: 'pytest': No such file or directory", "error"),
        (
            "docker exec a pytest | tail",
            0,
            "x: exec: \"pytest\": executable file not found in $PATH",
            "error",
        ),
        (
            "go test -v | head -2",
            0,
            "=== RUN   TestA\n    a.go:3: exec: \"go\": executable file not found in $PATH",
            "unknown",
        ),
        ("pytest", 1, "pytest: The term 'pytest' is not recognized as a name of a cmdlet", "error"),
        ("python -m pytest", 9009, "Python was not found; run without arguments to x", "error"),
        // A wrong option
        ("npx playwright test --foo", 1, "error: unknown option '--foo'", "error"),
        ("mypy --foo", 2, "usage: mypy [-h]\nmypy: error: unrecognized arguments: --foo", "error"),
        (
            "npx vitest --foo",
            1,
            "a.js:4\n  throw\n  ^\n\nCACError: Unknown option `--foo`",
            "error",
        ),
        ("black --foo --check", 2, "Usage: x\nTry y\n\nError: No such option: --foo", "error"),
        ("phpunit --foo", 2, "PHPUnit 11.0\n\nUnknown option \"--foo\"", "error"),
        ("make --foo test", 2, "make: unrecognized option '--foo'", "error"),
        ("npm test -- --foo", 1, "> a\n> playwright test\nerror: unknown option '--foo'", "failed"),
        // Regression: the programs under test had the unknown options.
        ("make test", 2, "app test: error: unrecognized arguments: --foo\nmake: x", "failed"),
        ("go test -v | head -2", 0, "=== RUN   TestA\nError: unknown flag: --a", "unknown"),
        // The tool's own exit codes
        ("robot t", 252, "[ ERROR ] Parsing 't' failed", "error"),
        ("robot t", 253, "x", "unknown"),
        ("robot t", 3, "x", "failed"),
        ("bazel test //...", 8, "ERROR: build interrupted", "unknown"),
        ("shellcheck a.sh", 3, "x", "error"),
        ("cargo test", 0xC000_013A, "", "unknown"),
        ("cargo test", 0xC000_0005, "", "failed"),
        // The script that sets up the environment is missing, so the check did not run.
        (". .venv/bin/activate && pytest", 1, "sh: 1: .: cannot open .venv/bin/activate", ""),
        ("source v/a && pytest", 1, "bash: v/a: No such file or directory", ""),
        ("source v/a && pytest", 1, "zsh: no such file or directory: v/a", ""),
        ("source v/a && pytest", 127, "/bin/sh: 1: source: not found", ""),
        // Regression: in other languages and for other reasons, the check failed.
        ("cd a && pytest", 1, "bash: line 1: cd: a: Datei oder Verzeichnis nicht gefunden", ""),
        ("cd a b && pytest", 1, "bash: line 1: cd: too many arguments", ""),
        ("cd a b && pytest", 1, "(eval):cd:1: string not in pwd: a", ""),
        ("cd a && pytest", 1, "cd: The directory 'a' does not exist", ""),
        ("pushd a && pytest", 1, "bash: ligne 1: pushd: a: Aucun fichier", ""),
        ("cmd /c \"cd a && pytest\"", 1, "The system cannot find the path specified.", ""),
        ("cd a && ./test.sh", 1, "./test.sh: line 3: cd: b: x", "failed"),
        ("cd a && make test", 2, "sh: cd: b: x\nmake: *** [Makefile:3: test] Error 1", "failed"),
        ("cd a && mvn test", 1, "[ERROR] x in bash: package a does not exist", "failed"),
        ("cd a && ./gradlew test", 126, "bash: ./gradlew: Permission denied", "error"),
        ("cd a && ./gradlew test", 127, "zsh: no such file or directory: ./gradlew", "error"),
    ] {
        assert_eq!(status(line, code, output), expected, "{line} {code} {output}");
    }
}

/// Regression: a tool or runner that had nothing to run, or no valid configuration, was a failed
/// check.
#[test]
fn a_check_whose_tool_or_runner_says_that_it_cannot_run_it_is_an_error() {
    for (line, code, output, expected) in [
        ("docker exec -it web pytest", 1, "the input device is not a TTY", "error"),
        ("sshpass -p x ssh h make test", 5, "Permission denied, please try again.", "error"),
        (
            "wsl -d x -- cargo test",
            1,
            "Es gibt keine Distribution.\nFehlercode: Wsl/Service/WSL_E_DISTRO_NOT_FOUND",
            "error",
        ),
        (
            "docker compose exec web pytest",
            1,
            "cannot attach stdin to a TTY-enabled container because x",
            "error",
        ),
        (
            "docker compose run web pytest",
            1,
            "dependency failed to start: container db is unhealthy",
            "error",
        ),
        (
            "podman exec web pytest",
            255,
            "Error: can only create exec sessions on running containers: x",
            "error",
        ),
        ("sudo make test", 1, "root is not in the sudoers file.", "error"),
        ("sudo -u x make test", 1, "sudo: unknown user x", "error"),
        ("su x -c 'make test'", 1, "su: user x does not exist", "error"),
        (
            "op run -- npm test",
            1,
            "[ERROR] 2026/05/01 10:00:00 You are not currently signed in.",
            "error",
        ),
        ("npm test", 1, "npm error code EJSONPARSE\nnpm error path /w/package.json", "error"),
        ("yarn test", 1, "error Couldn't find a package.json file in \"/w\"", "error"),
        (
            "yarn test",
            1,
            "Internal Error: a@workspace:.: This package doesn't seem to be present",
            "error",
        ),
        (
            "bunx vitest run",
            1,
            "error: could not determine executable to run for package vitest",
            "error",
        ),
        ("make test", 2, "Makefile:3: *** missing separator.  Stop.", "error"),
        ("make test", 2, "Makefile:3: *** 缺失分隔符 。 停止。", "error"),
        ("make -f x.mk test", 2, "make: *** No rule to make target 'x.mk'.  Stop.", "error"),
        ("just test", 1, "error: Unknown start of token:\n --> justfile:3:1", "error"),
        ("mise x -- pytest", 1, "mise ERROR \"pytest\" couldn't exec process: x", "error"),
        ("mise run test", 1, "mise ERROR error parsing config file: /w/mise.toml", "error"),
        (
            "./gradlew :a:test",
            1,
            "FAILURE: x\n* What went wrong:\nCannot locate tasks that match ':a:test' as",
            "error",
        ),
        (
            "./gradlew test",
            1,
            "Error: Unable to access jarfile /w/gradle/wrapper/gradle-wrapper.jar",
            "error",
        ),
        (
            "mvn test -pl x",
            1,
            "[INFO] x\n[ERROR] [ERROR] Could not find the selected project in the reactor",
            "error",
        ),
        (
            "uv run --group x pytest",
            2,
            "error: Group `x` is not defined in the project's `x` table",
            "error",
        ),
        ("uv run --frozen pytest", 2, "error: Unable to find lockfile at `uv.lock`.", "error"),
        (
            "php artisan test",
            255,
            "PHP Warning:  require(/w/vendor/autoload.php): Failed to open stream",
            "error",
        ),
        ("mix test", 1, "Unchecked dependencies for environment test:\n* x", "error"),
        ("ctest --test-dir x", 1, "Failed to change working directory to \"x\" : x", "error"),
        ("cmake --build x", 1, "Error: /w/x is not a directory", "error"),
        ("dotnet test", 1, "MSBUILD : error MSB1003: Specify a project or solution file.", "error"),
        ("npx jest", 1, "Error: Could not find a config file based on provided values:", "error"),
        ("npx vitest run", 1, " MISSING DEPENDENCY  Cannot find dependency 'jsdom'", "error"),
        (
            "npx playwright test",
            1,
            "Error: http://localhost:3000 is already used, make sure that",
            "error",
        ),
        (
            "npx cypress run",
            1,
            "The cypress npm package is installed, but the Cypress binary is missing.",
            "error",
        ),
        (
            "mypy",
            2,
            "usage: mypy [-h]\nmypy: error: Missing target module, package, files, or command.",
            "error",
        ),
        ("poe test", 1, "Error: Unrecognized task 'test'", "error"),
        ("npm test", 1, "Volta error: Could not download node@20", "error"),
        ("golangci-lint run", 3, "Failed executing command with error: x", "error"),
        ("ruff check", 2, "error: Failed to parse /w/pyproject.toml", "error"),
        ("rubocop", 2, "Error: unrecognized cop x found in .rubocop.yml", "error"),
        ("pyright", 4, "File or directory \"/w/x\" does not exist.", "error"),
        ("tox -e x", 254, "ROOT: HandledError| x", "error"),
        ("npx eslint .", 2, "Oops! Something went wrong! :(\n\nESLint: 9.0.0", "error"),
        ("npx eslint . | tail -20", 0, "Oops! Something went wrong! :(", "error"),
        ("npm run lint", 2, "> a@1 lint\n> eslint .\n\nOops! Something went wrong! :(", "error"),
        ("cmd /c pytest", 1, "'pytest' n'est pas reconnu en tant que commande interne", "error"),
        (
            "npm test",
            1,
            "> a@1.0.0 test\n> jest\n'jest' 不是内部或外部命令，也不是可运行的程序\n或批处理文件。",
            "error",
        ),
        (
            "npm test",
            1,
            "> a@1.0.0 test\n> jest\nDer Befehl \"jest\" ist entweder falsch geschrieben oder",
            "error",
        ),
        // The check ran, or had no tests.
        ("dotnet test", 1, "a.cs(3,5): error CS0103: x", "failed"),
        ("dotnet test", 1, "CSC : error CS5001: x", "failed"),
        ("rubocop", 2, "3 files inspected, 1 offense detected", "failed"),
        ("make test", 2, "t.c:3: *** x failed. Aborted.\nmake: *** [test] Error 1", "failed"),
        ("golangci-lint run", 1, "a.go:3:2: x (errcheck)", "failed"),
        ("npx eslint .", 1, "✖ 2 problems (2 errors, 0 warnings)", "failed"),
        ("op run -- npm test", 1, "[ERROR] 2026/05/01 10:00:00 expected 3, got 4", "failed"),
        (
            "ssh h make test",
            2,
            "Permission denied, please try again.\nmake: *** [test] Error 1",
            "failed",
        ),
        ("docker exec web pytest", 1, "the input device is not a TTY\n1 failed in 0.1s", "failed"),
        (
            "npm test",
            1,
            "> a\n> b\n'jest' is not recognized as an internal or external command,\nx\ny\nz",
            "failed",
        ),
        (
            "mix test --only x",
            1,
            "The --only option was given to \"mix test\" but no test was executed",
            "unknown",
        ),
        (
            "bun test x",
            1,
            "bun test v1.2\nThe following filters did not match any test files:",
            "unknown",
        ),
    ] {
        assert_eq!(status(line, code, output), expected, "{line} {code} {output}");
    }
}

/// Regression: patterns that also matched a message with the name of the check bypassed both rules.
#[test]
fn a_message_without_the_name_of_the_check_counts_at_the_beginning_of_the_only_check() {
    for (line, other, message) in [
        ("just test", "just lint", "error: No justfile found"),
        ("task test", "task lint", "task: No Taskfile found at \"/w\""),
        ("poetry run pytest", "poetry run mypy .", "Poetry could not find a pyproject.toml file"),
        ("bundle exec rspec", "bundle exec rubocop", "Could not locate Gemfile"),
        ("conda run pytest", "conda run mypy .", "EnvironmentLocationNotFound: Not a conda env"),
    ] {
        assert_eq!(status(line, 1, message), "error", "{line}");
        let late = format!("a\nb\nc\nd\n{message}");
        assert_eq!(status(line, 1, &late), "failed", "{line}");
        // Which of the two printed it is not known.
        let both = ended(&format!("{line} || {other}"), "finished", Some(1), message);
        assert!(both.starts_with("1:") && both.contains(" 2:"), "{both}");
        assert!(!both.contains("error"), "{line} || {other}: {both}");
    }
}

#[test]
fn a_check_that_may_have_had_nothing_to_run_passes_only_with_a_summary() {
    for (line, code, output, expected) in [
        ("git diff --name-only | xargs -r ruff check", 0, "", "unknown"),
        ("git diff --name-only | xargs -r ruff check", 0, "All checks passed!", "passed"),
        ("git diff --name-only | xargs -r ruff check", 123, "Found 1 error.", "failed"),
        ("git ls-files -z | xargs -0rn9 npx eslint", 0, "", "unknown"),
        ("git ls-files | xargs -r sh -c 'go vet \"$@\"' x", 0, "", "unknown"),
        ("git ls-files | xargs npx eslint", 0, "", "passed"),
        ("npm test --if-present", 0, "", "unknown"),
        ("npm test --if-present", 0, "Test Suites: 1 passed, 1 total", "passed"),
        ("pnpm -F pkg test", 0, "No projects matched the filters in \"/w\"", "unknown"),
        ("pnpm -F pkg test", 0, "> vitest run", "passed"),
    ] {
        assert_eq!(status(line, code, output), expected, "{line}: {output}");
    }
}

const EMPTY_CARGO_RUN: &str =
    "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.00s";

/// Regression: a run that found no tests passed or failed.
#[test]
fn a_run_without_tests_is_unknown() {
    let nextest =
        "     Summary [   0.000s] 0 tests run: 0 passed, 2 skipped\nerror: no tests to run";
    for (line, code, output, expected) in [
        ("npx jest --passWithNoTests", 0, "No tests found, exiting with code 0", "unknown"),
        ("npx jest", 1, "No tests found, exiting with code 1\nRun with x", "unknown"),
        ("npm test", 1, "> vitest run\n\nNo test files found, exiting with code 1", "unknown"),
        ("npm test", 1, "> echo \"Error: x\" && exit 1\n\nError: no test specified", "unknown"),
        (
            "npm test -ws",
            1,
            "Tests: 1 failed, 1 total\nnpm error code 1\n\nError: no test specified",
            "failed",
        ),
        ("npx playwright test", 1, "Error: No tests found", "unknown"),
        ("npx mocha", 1, "Error: No test files found: \"test\"", "unknown"),
        ("python -m unittest", 5, "-----\nRan 0 tests in 0.000s\n\nNO TESTS RAN", "unknown"),
        ("python -m unittest | tail -3", 0, "Ran 0 tests in 0.000s\n\nOK", "unknown"),
        ("python -m unittest", 0, "Ran 0 tests in 0.000s\n\nOK", "unknown"),
        ("python -m unittest", 0, "Ran 2 tests in 0.001s\n\nOK", "passed"),
        ("cargo nextest run", 4, nextest, "unknown"),
        ("cargo nextest run --no-tests=pass", 0, nextest, "unknown"),
        ("nox -s a", 0, "nox > Session a skipped: Python interpreter 3.9 not found.", "unknown"),
        ("nox", 0, "nox > Session a skipped: x\nnox > Session b was successful.", "passed"),
        ("go test ./cmd", 0, "?   \ta/cmd\t[no test files]", "unknown"),
        ("go test ./...", 0, "?   \ta/cmd\t[no test files]\nok  \ta\t0.1s", "passed"),
        ("go test ./...", 1, "?   \ta/cmd\t[no test files]\nFAIL\ta\t0.1s\nFAIL", "failed"),
        ("ctest", 0, "No tests were found!!!", "unknown"),
        ("dotnet test", 0, "No test is available in /w/a.dll.", "unknown"),
        ("dotnet test", 1, "No test is available in /w/a.dll.\na.cs(1,2): error CS1: x", "failed"),
        ("phpunit", 1, "No tests executed!", "unknown"),
        ("npx jest -o", 0, "No tests found related to files changed since last commit.", "unknown"),
        ("node --test a", 0, "ℹ tests 0\nℹ pass 0\nℹ fail 0", "unknown"),
        ("node --test a", 0, "ℹ tests 1\nℹ pass 1\nℹ fail 0", "passed"),
        (
            "bun test -t nope | tail -3",
            0,
            " 0 pass\n 0 fail\nRan 0 tests across 1 file.",
            "unknown",
        ),
        ("bun test -t a | tail -3", 0, " 1 pass\n 0 fail\nRan 1 test across 1 file.", "passed"),
        ("lein test", 0, "Ran 0 tests containing 0 assertions.\n0 failures, 0 errors.", "unknown"),
        (
            "swift test",
            0,
            "\t Executed 0 tests, with 0 failures (0 unexpected) in 0.000 (0.001) seconds",
            "unknown",
        ),
        ("dotnet test", 8, "Test run summary: Zero tests ran - a.dll", "unknown"),
        (
            "./gradlew test --tests nope",
            1,
            "> No tests found for given includes: [nope](--tests filter)\n\nBUILD FAILED in 1s",
            "unknown",
        ),
        (
            "mvn test -Dtest=Nope",
            1,
            "[ERROR] Failed to execute goal a:b: No tests matching pattern \"Nope\" were executed!",
            "unknown",
        ),
        ("ginkgo", 0, "SUCCESS! -- 0 Passed | 0 Failed | 0 Pending | 5 Skipped", "unknown"),
        ("gotestsum", 0, "DONE 0 tests in 0.102s", "unknown"),
        ("npx cucumber-js -t @nope", 0, "0 scenarios\n0 steps", "unknown"),
        ("forge test --mt nope", 1, "No tests match the provided pattern:", "unknown"),
        ("zig test a.zig", 0, "All 0 tests passed.", "unknown"),
        ("make test", 0, "make: 'test' is up to date.", "unknown"),
        ("make -C sub check", 0, "make: Nothing to be done for `check'.", "unknown"),
        ("make lint test", 0, "make: 'lint' is up to date.\nok", "unknown"),
        ("make test", 0, "make[1]: 'test' is up to date.\nmake: 'a.o' is up to date.", "passed"),
        ("make build", 0, "make: 'build' is up to date.", "passed"),
        ("mvn test", 0, "[INFO] No tests to run.\n[INFO] BUILD SUCCESS", "unknown"),
        (
            "mvn test",
            0,
            "[INFO] No tests to run.\n[INFO] Tests run: 3, Failures: 0\n[INFO] BUILD SUCCESS",
            "passed",
        ),
        ("mvn package", 0, "[INFO] No tests to run.\n[INFO] BUILD SUCCESS", "passed"),
        ("./gradlew test", 0, "> Task :test NO-SOURCE\n\nBUILD SUCCESSFUL in 1s", "unknown"),
        (
            "./gradlew test",
            0,
            "> Task :a:test NO-SOURCE\n> Task :b:test\n\nBUILD SUCCESSFUL in 1s",
            "passed",
        ),
        (
            "sbt test",
            0,
            "[info] No tests to run for Test / test\n[success] Total time: 1 s",
            "unknown",
        ),
        ("prove", 0, "Files=0, Tests=0, 0 wallclock secs\nResult: NOTESTS", "unknown"),
        ("bats tests", 0, "1..0", "unknown"),
        ("npx tape a.js", 0, "TAP version 13\n\n1..0\n# tests 0\n# pass  0", "unknown"),
        ("terraform test", 0, "Success! 0 passed, 0 failed.", "unknown"),
        ("dbt test", 0, "Done. PASS=0 WARN=0 ERROR=0 SKIP=0 TOTAL=0", "unknown"),
        (
            "turbo run test",
            0,
            "No tasks were executed as part of this run.\n\n Tasks:    0 successful, 0 total",
            "unknown",
        ),
        ("pre-commit run", 0, "ruff.......(no files to check)Skipped", "unknown"),
        ("npx cypress run", 1, "Can't run because no spec files were found.", "unknown"),
        ("mypy docs", 2, "There are no .py[i] files in directory 'docs'", "unknown"),
        ("cargo test nope", 0, EMPTY_CARGO_RUN, "unknown"),
        ("cargo test add", 0, &format!("{EMPTY_CARGO_RUN}\ntest result: ok. 1 passed"), "passed"),
        ("cargo test add | tail -2", 0, EMPTY_CARGO_RUN, "passed"),
        (
            "cargo test",
            0,
            "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 f",
            "passed",
        ),
        ("go test -run Nope ./...", 0, "ok  \ta\t0.1s [no tests to run]", "unknown"),
        (
            "go test -run TestA ./...",
            0,
            "ok  \ta\t0.1s [no tests to run]\nok  \tb\t(cached)",
            "passed",
        ),
        ("npx jest -t nope", 0, "Tests:       3 skipped, 3 total", "unknown"),
        ("npx vitest run -t nope", 0, "      Tests  3 skipped (3)", "unknown"),
        ("npx mocha -g nope", 0, "  0 passing (1ms)", "unknown"),
        ("rspec -e nope", 0, "0 examples, 0 failures", "unknown"),
        ("rails test -n nope", 0, "0 runs, 0 assertions, 0 failures, 0 errors, 0 skips", "unknown"),
        (
            "deno test --filter nope",
            0,
            "ok | 0 passed | 0 failed | 3 filtered out (1ms)",
            "unknown",
        ),
        (
            "bazel test //...",
            4,
            "ERROR: No test targets were found, yet testing was requested",
            "unknown",
        ),
        ("meson test nope", 1, "No suitable tests defined.", "unknown"),
        (
            "ruff check nope",
            0,
            "warning: No Python files found under the given path(s)\nAll checks passed!",
            "unknown",
        ),
        ("black --check .", 0, "No Python files are present to be formatted.", "unknown"),
        ("mypy", 0, "Success: no issues found in 0 source files", "unknown"),
        ("mypy", 0, "Success: no issues found in 10 source files", "passed"),
        ("pyright", 0, "No source files found.\n0 errors, 0 warnings, 0 informations", "unknown"),
        (
            "oxlint",
            0,
            "Found 0 warnings and 0 errors.\nFinished in 1ms on 0 files with 9",
            "unknown",
        ),
        ("swiftlint", 0, "Done linting! Found 0 violations, 0 serious in 0 files.", "unknown"),
        ("cspell a", 0, "CSpell: Files checked: 0, Issues found: 0 in 0 files.", "unknown"),
        ("markdownlint-cli2 a", 0, "Linting: 0 file(s)\nSummary: 0 error(s)", "unknown"),
        ("conftest test a", 0, "0 tests, 0 passed, 0 warnings, 0 failures", "unknown"),
        ("opa test .", 0, "PASS: 0/0", "unknown"),
        ("opa test .", 0, "PASS: 10/10", "passed"),
        ("pants test ::", 0, "[WARN] No applicable files or targets matched.", "unknown"),
        ("staticcheck ./a", 0, "warning: \"./a\" matched no packages", "unknown"),
        ("phpstan analyse", 1, " [ERROR] No files found to analyse.", "unknown"),
        ("task test", 0, "task: Task \"test\" is up to date", "unknown"),
        ("task test", 0, "task: Task \"build\" is up to date\nx", "passed"),
        ("task build", 0, "task: Task \"build\" is up to date", "passed"),
        ("mise run test", 0, "[test] sources up-to-date, skipping", "unknown"),
        (
            "xcodebuild test",
            0,
            "\t Executed 0 tests, with 0 failures (0 unexpected)\n** TEST SUCCEEDED **",
            "unknown",
        ),
        (
            "xcodebuild test",
            0,
            "\t Executed 0 tests, with 0 failures\n\t Executed 3 tests, with 0 failures\n\
             ** TEST SUCCEEDED **",
            "passed",
        ),
        ("rubocop", 0, "0 files inspected, no offenses detected", "unknown"),
        ("deno lint nope", 1, "error: No target files found.", "unknown"),
        ("go vet", 1, "no Go files in /w", "unknown"),
        ("cargo test --test nope", 101, "error: no test target named `nope` in `a`", "error"),
        ("cargo test -p nope", 101, "error: package ID specification `nope` did not", "error"),
    ] {
        assert_eq!(status(line, code, output), expected, "{line} {code} {output}");
    }
}

#[test]
fn a_script_that_is_no_shell_failed_its_syntax_check() {
    let message = "line 3: syntax error near unexpected token `fi'";
    assert_eq!(status("bash -n a.sh", 2, &format!("a.sh: {message}")), "failed");
    assert_eq!(status("bash ci.sh", 2, &format!("ci.sh: {message}")), "failed");
    assert_eq!(status("bash -n fi", 2, &format!("/bin/bash: -c: {message}")), "");
    assert_eq!(status("bash -n fi", 2, &format!("bash: eval: {message}")), "");
}

#[test]
fn a_failed_line_is_a_failed_check_unless_its_preparation_may_have_failed() {
    for (line, code, output, expected) in [
        ("rm -rf target && cargo test", 101, "x", "failed"),
        ("rm target && cargo test", 1, "rm: cannot remove 'target': No such file or directory", ""),
        ("mkdir -p build && cd build && ctest", 8, "x", "failed"),
        ("mkdir -p b && cd b && cmake .. && ctest", 8, "x", "failed"),
        ("cmake .. && ctest", 1, "x", "unknown"),
        ("cmake .. && ctest || exit 8", 8, "x", "unknown"),
        ("git pull && cargo test", 101, "x", "failed"),
        ("git pull && cargo test", 1, "x", "unknown"),
        ("mkdir build && ctest", 1, "mkdir: cannot create directory 'build': File exists", ""),
    ] {
        assert_eq!(status(line, code, output), expected, "{line} {code} {output}");
    }
}

#[test]
fn a_check_that_may_still_be_running_has_not_passed() {
    let green = "test result: ok. 1 passed";
    let red = "test result: FAILED. 1 passed; 1 failed";
    for (line, output, expected) in [
        ("nohup cargo test > t.txt 2>&1 &\nsleep 1; cat t.txt", green, "unknown"),
        ("nohup cargo test > t.txt 2>&1 &\nsleep 1; cat t.txt", red, "failed"),
        ("(cargo test > o.txt 2>&1) & sleep 5; tail -1 o.txt", green, "unknown"),
        ("{ cargo test; } &> o.txt & sleep 5; tail -1 o.txt", red, "failed"),
        ("(cargo test > o.txt &); sleep 5; tail -1 o.txt", green, "unknown"),
        ("cargo test > o.txt 2>&1 & wait; tail -1 o.txt", green, "passed"),
        ("npx tsc --noEmit & sleep 5", "", "unknown"),
    ] {
        assert_eq!(status(line, 0, output), expected, "{line}: {output}");
    }
}

#[test]
fn a_filtered_summary_gives_a_verdict_only_if_enough_of_it_is_visible() {
    for (line, output, expected) in [
        ("cargo test | tail", "x\ntest result: ok. 1 passed", "passed"),
        ("cargo test | tail -1", "test result: ok. 1 passed", "passed"),
        ("cargo test | head -1", "test result: ok. 1 passed", "unknown"),
        ("cargo test | head -9", "test result: ok. 1 passed", "passed"),
        ("cargo test --no-fail-fast | tail -1", "test result: ok. 1 passed", "unknown"),
        ("cargo test | grep 'test result'", "test result: ok. 1 passed", "passed"),
        ("cargo test | grep 'result: ok'", "test result: ok. 1 passed", "unknown"),
        ("go test ./... | tail -1", "ok  \tb\t1s", "unknown"),
        ("go test ./... | tail -1", "FAIL\tb\t1s", "failed"),
        ("go test ./... | tail -30", "ok  \ta\t1s\nok  \tb\t1s", "passed"),
        ("go test ./... | tail", "--- FAIL: TestA (0.00s)\nok  \tb\t1s", "failed"),
        ("go test ./b | tail -1", "ok  \tb\t1s", "passed"),
        (
            "npx jest 2>&1 | tail -3",
            "Tests:       2 failed, 3 passed, 5 total\nSnapshots: 0\nTime: 1 s",
            "failed",
        ),
        (
            "npx jest 2>&1 | tail -4",
            "Test Suites: 3 passed, 3 total\nTests: 5 passed\nSnapshots: 0\nTime: 1 s",
            "passed",
        ),
        // Of a suite that could not be loaded, this summary would show no failed test.
        (
            "npx jest 2>&1 | tail -3",
            "Tests:       3 passed, 3 total\nSnapshots: 0\nTime: 1 s",
            "unknown",
        ),
        (
            "npx vitest run | tail -4",
            " Test Files  1 failed | 1 passed (2)\n      Tests  3 passed (3)\n\n",
            "failed",
        ),
        ("pytest | cat", "=== 1 failed in 2s ===", "failed"),
        ("pytest | tail -1", "3 passed, 1 warning in 0.10s", "passed"),
        ("pytest -q | tail -1", "1 failed, 3 passed in 61.20s (0:01:01)", "failed"),
        ("pytest | tail -1", "3 passed, 2 xfailed in 0.10s", "passed"),
        ("pytest | tail -1", "we passed in 3s", "unknown"),
        (
            "pytest | tail -1",
            "\u{1b}[32m\u{1b}[1m3 passed\u{1b}[0m\u{1b}[32m in 0.10s\u{1b}[0m",
            "passed",
        ),
        ("mise run lint 2>&1 | head", "[lint] $ x\n0 issues.", "passed"),
        ("npm test | tail -5", "Tests: 1 failed, 2 passed", "failed"),
        (
            "npm test | tail -5",
            "2 passing (3ms)\nnpm error Lifecycle script `test` failed with error:",
            "failed",
        ),
        ("make test | tail -5", "make: *** [Makefile:3: test] Error 1", "failed"),
        ("make test | tail -5", "done", "unknown"),
        ("npx tsc --noEmit | head -20", "", "passed"),
        ("npx tsc --noEmit | grep src", "", "unknown"),
        ("npx tsc --noEmit > log; true", "", "unknown"),
        // Regression: the output went to a file, so it did not show that nothing was found.
        ("deno task test | tail -1", "error: Test failed", "failed"),
        // The file is shown if the check failed.
        (
            "cargo test > log 2>&1 || tail -1 log",
            "test result: FAILED. 1 passed; 1 failed",
            "failed",
        ),
        ("npx tsc > log 2>&1 || tail -1 log", "", "passed"),
        ("npx tsc > log 2>&1 && tail -1 log; true", "", "unknown"),
        ("npx tsc > log 2>&1 || ls || tail -1 log", "", "unknown"),
        ("npx tsc > log 2>&1 || cat log > other; true", "", "unknown"),
        // Another program may have printed the line.
        (
            "./a.sh; cargo test > log || tail -1 log",
            "test result: FAILED. 1 passed; 1 failed",
            "unknown",
        ),
        (
            "cat b; cargo test > log || tail -1 log",
            "test result: FAILED. 1 passed; 1 failed",
            "unknown",
        ),
        (
            "if ! out=$(cargo test 2>&1); then echo \"$out\" | tail -1; fi",
            "test result: FAILED. 1 passed; 1 failed",
            "failed",
        ),
        ("if npx tsc > log 2>&1; then cat log; fi", "", "unknown"),
        ("npx tsc --noEmit >& log; true", "", "unknown"),
        ("npx eslint . -o report.txt || true", "", "unknown"),
        ("npx eslint . --output-file=report.txt; true", "", "unknown"),
        ("go build -o a ./...; true", "", "passed"),
        // A file that the filter leaves out may have an error.
        ("npx tsc --noEmit | grep -v node_modules | head", "", "unknown"),
        ("npx tsc --noEmit | grep -v '^$' | head", "", "passed"),
        ("exec > log 2>&1; npx tsc --noEmit; true", "", "unknown"),
        (
            "exec > >(tee log) 2>&1; cargo test; ls",
            "test result: FAILED. 1 passed; 1 failed",
            "failed",
        ),
        ("npx tsc --noEmit >&2; true", "", "passed"),
        ("npx tsc --noEmit > /dev/stderr; true", "", "passed"),
        ("cargo test >& /dev/stdout | tail", "test result: FAILED. 1 passed; 1 failed", "failed"),
        ("cargo test >& log; tail -3 log", "test result: FAILED. 1 passed; 1 failed", "failed"),
        ("gofmt -l .", "", "passed"),
        ("gofmt -l .", "a.go", "failed"),
        ("cargo test > log 2>&1; tail -3 log", "test result: FAILED. 1 passed; 1 failed", "failed"),
        ("cargo test > log 2>&1; ls", "test result: FAILED. 1 passed; 1 failed", "unknown"),
        ("go test ./...; ls", "ok  \ta\t1s\n…120 tokens truncated…\nok  \tb\t1s", "unknown"),
    ] {
        assert_eq!(status(line, 0, output), expected, "{line}: {output}");
    }
}

/// Regression: a failing run whose summary was cut off, as by `head`, was unknown.
#[test]
fn a_line_that_reports_one_failure_is_enough() {
    for (line, output, expected) in [
        ("mypy a | head -1", "a.py:3: error: Incompatible types  [assignment]", "failed"),
        ("mypy a | head -1", "a.py:3: note: Revealed type is \"int\"", "unknown"),
        ("pyright | head -1", "  /w/a.py:3:5 - error: \"b\" is not defined", "failed"),
        ("ruff check . | head -1", "a.py:1:8: F401 [*] `os` imported but unused", "failed"),
        ("npx eslint . | head -1", "  3:5  error  'x' is not defined  no-undef", "failed"),
        ("npx eslint . | head -1", "  3:5  warning  'x' is not used  no-unused-vars", "unknown"),
        ("cargo test 2>&1 | head -1", "error[E0425]: cannot find value `b`", "failed"),
        ("cargo test 2>&1 | grep FAILED | head -1", "test tests::adds ... FAILED", "failed"),
        ("cargo clippy 2>&1 | head -1", "error: unused import: `std::fs`", "failed"),
        ("cargo clippy 2>&1 | head -1", "warning: unused import: `std::fs`", "unknown"),
        ("cargo clippy | tail -1", "error: the lock file a needs to be updated", "unknown"),
        ("cargo clippy | tail -1", "error: the option `Z` is only accepted on nightly", "unknown"),
        ("make build | head -1", "error: unused import: `std::fs`", "unknown"),
        ("cargo nextest run | head -1", "        FAIL [   0.005s] a tests::adds", "failed"),
        ("cargo nextest run | head -1", "  TRY 1 FAIL [   0.005s] a tests::adds", "unknown"),
        ("go test ./... | head -1", "panic: test timed out after 5s", "failed"),
        ("go test ./... | head -1", "./a_test.go:3:2: undefined: b", "failed"),
        ("go test ./... | head -1", "./a_test.go:3:2: not enough arguments in call", "failed"),
        ("go test ./... | head -1", "./a.go:3:2: warning: 'f' is deprecated", "unknown"),
        ("go build ./... | head -1", "./a.go:3:2: warning: 'f' is deprecated", "unknown"),
        ("go build ./... | tail", "# a.com/b/c\nc.c:3:5: warning: unused", "unknown"),
        (
            "make test | tail",
            "# a.com/b/c\nc.c:3:5: warning: unused\nok  \ta.com/b/c\t0.1s",
            "passed",
        ),
        ("go test ./... | head -1", "    a_test.go:12: note", "unknown"),
        (
            "go test -v . 2>&1 | tail -4",
            "a.go:3:2: x is unused\n--- PASS: TestLint (0.00s)\nPASS\nok  \ta\t0.1s",
            "passed",
        ),
        ("pytest | head -1", "=========== FAILURES ===========", "failed"),
        ("pytest -s | tail -2", "=== FAILURES ===\n=== 2 passed in 0.10s ===", "passed"),
        // One of several runs failed.
        ("make a-lint | tail -2", "a.py:3: error: x\nAll checks passed!", "unknown"),
        (
            "for d in a b; do pytest $d | grep -E ':FAILED|passed'; done",
            "=== FAILURES ===\n=== 2 passed in 0.10s ===",
            "unknown",
        ),
        ("pytest -v | head -1", "tests/test_a.py::test_b FAILED      [ 33%]", "failed"),
        ("pytest -v | head -1", "tests/test_a.py::test_b RERUN       [ 33%]", "unknown"),
        ("python -m unittest | head -1", "FAIL: test_a (tests.A.test_a)", "failed"),
        ("python -m unittest | head -1", "ERROR: test failed (timeout)", "unknown"),
        ("npx vitest run | head -1", " FAIL  src/a.test.ts > adds", "failed"),
        ("npx vitest run | head -1", " ❯ src/a.test.ts (3 tests | 1 failed) 12ms", "failed"),
        ("npx vitest run | head -1", " ❯ src/a.test.ts (3 tests | 1 skipped) 12ms", "unknown"),
        ("rspec | tail -1", "rspec ./spec/a_spec.rb:3 # A adds", "failed"),
        ("rails test | grep 'rails test'", "bin/rails test test/a_test.rb:3", "failed"),
        ("mix test | head -1", "  1) test adds (ATest)", "failed"),
        ("phpunit | head -1", "There was 1 failure:", "failed"),
        ("dotnet test | head -1", "  Failed A.Tests.Adds [12 ms]", "failed"),
        ("dotnet build | head -1", "/w/a.fs(3,5): error FS0039: x [/w/a.fsproj]", "failed"),
        // The tests of another project passed.
        (
            "dotnet test | tail",
            "/w/b.cs(3,5): error CS0103: x [/w/b.csproj]\n\
             Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3, Duration: 1 ms",
            "failed",
        ),
        ("mvn compile | head -1", "[ERROR] /w/src/A.java:[3,5] cannot find symbol", "failed"),
        ("./gradlew test | grep FAILED", "> Task :app:test FAILED", "failed"),
        ("sbt compile | head -1", "[error] /w/A.scala:3:5: not found: value b", "failed"),
        ("swift test | head -1", "/w/A.swift:5: error: -[A.A testA] : x", "failed"),
        ("cmake --build b | head -1", "/w/a.cpp:3:5: error: 'b' was not declared", "failed"),
        ("make build | head -1", "a.c:3:5: warning: unused variable 'b'", "unknown"),
        ("make build | head -1", "collect2: error: ld returned 1 exit status", "failed"),
        ("zig build test | head -1", "src/main.zig:3:5: error: expected type 'u8'", "failed"),
        ("bazel test //... | grep FAILED", "//a:b_test     FAILED in 0.1s", "failed"),
        ("ctest | tail -2", "The following tests FAILED:\n\t  3 - foo (Failed)", "failed"),
        ("make test | tail -2", "[  PASSED  ] 2 tests.\n[  FAILED  ] A.Adds", "failed"),
        ("make test | tail -1", "[  PASSED  ] 2 tests.", "passed"),
        // The second of two programs passed.
        (
            "make test | tail",
            "[  PASSED  ] 2 tests.\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] A.Adds\n\n \
             1 FAILED TEST\n[  PASSED  ] 3 tests.",
            "failed",
        ),
        ("make test | tail -1", "test cases: 3 | 2 passed | 1 failed", "failed"),
        ("make test | tail -1", "test cases: 3 | 2 passed | 1 failed as expected", "unknown"),
        ("npm run build | tail -1", "✓ built in 1.23s", "passed"),
        ("npm run build | tail -2", "Failed to compile.\nx", "failed"),
        ("bun run test:a | tail -1", "error: \"vitest\" exited with code 1", "failed"),
        (
            "npm run build | tail -1",
            "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
            "failed",
        ),
        ("npx jest | tail -1", "Snapshots:   1 failed, 2 passed, 3 total", "failed"),
        (
            "npx vitest run --typecheck | tail -2",
            " Test Files  1 passed (1)\nType Errors  2 errors",
            "failed",
        ),
        (
            "npx playwright test | tail",
            "  Timed out waiting 60s for the test suite to run\n  1 passed (1.0m)",
            "failed",
        ),
        ("terraform test | tail -1", "Failure! 2 passed, 1 failed.", "failed"),
        ("pytest a | tail -2", "ERROR: file or directory not found: a\n", "error"),
        ("pytest a::b | tail -1", "ERROR: not found: /w/a::b", "error"),
        ("pytest -s | head -2", "ERROR: not found: user 3\n.", "unknown"),
        ("pytest --foo | tail -2", "ERROR: usage: pytest [options]\npytest: error: x", "error"),
    ] {
        assert_eq!(status(line, 0, output), expected, "{line}: {output}");
    }
}

/// Regression: the texts that a line prints between its checks did not separate their output.
#[test]
fn printed_texts_separate_the_output_of_checks() {
    let two = "pytest a 2>&1 | tail -1; echo ---; pytest b 2>&1 | tail -1";
    let (green, red) = ("1 passed in 0.10s", "1 failed in 0.10s");
    let tsc = "echo A; npx tsc 2>&1 | head -9; echo B; npx vitest run 2>&1 | tail -1";
    let files = " Test Files  1 passed (1)";
    for (line, output, expected) in [
        (two, format!("{red}\n---\n{green}"), "1:failed 2:passed"),
        (two, format!("{green}\n---\n{red}"), "1:passed 2:failed"),
        // The text is printed once more than the line prints it.
        (two, format!("{red}\n---\n---\n{green}"), "1:unknown 2:unknown"),
        (
            &format!("{two}; echo ---; pytest c 2>&1 | tail -1"),
            format!("{green}\n---\n{red}\n---\n{green}"),
            "1:passed 2:failed 3:passed",
        ),
        (
            r#"echo -e "\n= a ="; pytest a 2>&1 | tail -1; printf '= b =\n'; pytest b 2>&1 | tail -1"#,
            format!("\n= a =\n{red}\n= b =\n{green}"),
            "1:failed 2:passed",
        ),
        // The error output may come after the texts.
        (&two.replace(" 2>&1", ""), format!("---\n{red}\n{green}"), "1:unknown 2:unknown"),
        (
            "pytest a 2>&1 & echo A; pytest b 2>&1; wait; ls",
            format!("A\n{red}\n{green}"),
            "1:unknown 2:unknown",
        ),
        (tsc, format!("A\nB\n{files}"), "1:passed 2:passed"),
        // The first number may be a count.
        ("flake8 --count a | tail; echo $?", "3\n0".to_owned(), "1:unknown"),
        (tsc, format!("A\na.ts(3,7): error TS2322: x\nB\n{files}"), "1:failed 2:passed"),
        ("npx tsc 2>&1 | head -20; echo done", "done".to_owned(), "1:passed"),
        ("npx tsc 2>&1 | head -20; ls", "a".to_owned(), "1:unknown"),
        ("timeout 9 npx tsc 2>&1 | head -20; echo done", "done".to_owned(), "1:unknown"),
        // The check may not have run.
        ("[ -d web ] && npx tsc | head -20; echo done", "done".to_owned(), "1:unknown"),
        ("[ -d web ] && npx tsc | head -20; true", String::new(), "1:unknown"),
        ("cd web && npx tsc | head -20; true", String::new(), "1:passed"),
        ("npx tsc | head -20", "Shell cwd was reset to /w".to_owned(), "1:passed"),
        ("npx tsc | head -20", "(Bash completed with no output)".to_owned(), "1:passed"),
        ("time npm test | tail -1", format!("{files}\n\nreal\t0m3.210s"), "1:passed"),
    ] {
        assert_eq!(ended(line, "finished", Some(0), &output), expected, "{line}: {output}");
    }
}

/// Regression: an output without a part of its lines counted as complete.
#[test]
fn every_mark_of_a_shortened_output_is_recognised() {
    for mark in [
        "[... omitted 120 of 400 lines ...]",
        "... [truncated] ...",
        "[... Observation truncated due to length ...]",
        "<elided_chars>\n12345 characters elided\n</elided_chars>",
        "... [CONTENT TRUNCATED] ...",
        "...output truncated...",
        "<bash_metadata>\nbash tool truncated output as it exceeded 30000 char limit",
        "<response clipped><NOTE>Only a part is shown</NOTE>",
        "<output too long - dropped 123 lines from the middle>",
        "[Showing lines 1900-2000 of 2000. Full output: /tmp/x]",
        "Output is truncated to fit in the message.",
        "... (123 lines hidden) ...",
    ] {
        let output = format!("ok  \ta\t1s\n{mark}\nok  \tb\t1s");
        assert_eq!(status("go test ./...; ls", 0, &output), "unknown", "{mark}");
        let output = format!("0 fail\n{mark}\n\nFull output saved to: /x");
        assert_eq!(status("bun test; ls", 0, &output), "unknown", "{mark}");
        let output = format!("{mark}\n 0 fail\n");
        assert_eq!(status("bun test; ls", 0, &output), "passed", "{mark}");
    }
    for line in [
        "truncated.go",
        "  hidden",
        "<input type=\"hidden\" name=\"content\">",
        "[warn] dropped response from peer",
    ] {
        let output = format!("{line}\nok  \ta\t1s");
        assert_eq!(status("go test ./...; ls", 0, &output), "passed", "{line}");
    }
}

#[test]
fn a_filter_that_changes_no_count_hides_nothing() {
    let files = " Test Files  1 passed (1)";
    for (filter, expected) in [
        (r"sed 's/\x1b\[[0-9;]*m//g'", "passed"),
        ("sed 's/failed/passed/'", "unknown"),
        ("sed '/failed/d'", "unknown"),
        ("cut -c1-200", "passed"),
        ("cut -c1-20", "unknown"),
        (r"tr -d '\r'", "passed"),
        ("tr -d a-z", "unknown"),
        ("Select-Object -Last 5", "passed"),
        ("select -last 5", "passed"),
        ("Out-Host", "passed"),
        ("Select-Object -First 1", "unknown"),
    ] {
        let line = format!("npx vitest run 2>&1 | {filter}");
        assert_eq!(status(&line, 0, files), expected, "{line}");
    }
    let line = r#"npx vitest run 2>&1 | grep "Files\|Tests\|Errors""#;
    assert_eq!(status(line, 0, files), "passed");
}

#[test]
fn a_line_is_read_as_a_terminal_shows_it() {
    for output in [
        "[32m[1m3 passed[0m[32m in 0.10s[0m",
        "\u{1b}(B\u{1b}[m3 passed in 0.10s\u{1b}(B\u{1b}[m",
        "\u{1b}]8;;file:///w/x\u{1b}\\3 passed in 0.10s\u{1b}]8;;\u{7}",
        "collecting ... \r3 passed in 0.10s\r",
    ] {
        assert_eq!(status("pytest | tail -1", 0, output), "passed", "{output:?}");
    }
}

#[test]
fn the_exit_code_that_powershell_prints_is_read() {
    for (line, code, output, expected) in [
        ("cargo test; echo \"exit: $LASTEXITCODE\"", 0, "x\nexit: 101", "failed"),
        ("cargo test; Write-Host \"exit: $LASTEXITCODE\"", 0, "x\nexit: 0", "passed"),
        ("cargo test | Select-Object -Last 1; echo $LASTEXITCODE", 0, "x\n101", "failed"),
        ("cargo test; exit $LASTEXITCODE", 101, "x", "failed"),
        ("cargo test | tail -3; echo ---; echo ${PIPESTATUS[0]}", 0, "x\n---\n0", "unknown"),
    ] {
        assert_eq!(status(line, code, output), expected, "{line}");
    }
}

/// The lines of passed runs of tools that the page's table does not have.
const PASSES_OUTSIDE_THE_PAGE: &[(&str, &str)] = &[
    ("cargo-build", "    Finished `dev` profile [unoptimized] target(s) in 1.20s"),
    ("maven", "[INFO] BUILD SUCCESS"),
    ("gradle", "BUILD SUCCESSFUL in 3s"),
    ("ant", "BUILD SUCCESSFUL"),
    ("turbo", " Tasks:    2 successful, 2 total"),
    ("nx", " NX   Successfully ran target test for project web"),
    ("lerna", "lerna success run Ran npm script 'test' in 2 packages in 1.2s:"),
    ("cpp-test", "[  PASSED  ] 3 tests."),
];

/// Returns whether this line alone says that the run of a tool passed.
fn is_pass(summary: &str, line: &str) -> bool {
    let summary = summary_table::find(summary).expect("a known summary");
    let shapes = summary::tool_matcher(summary).expect("valid patterns");
    let read = shapes.read(&[line], visibility::OutputVisibility::ALL, 0, false);
    read.passed && read.failed.is_empty()
}

#[test]
fn every_summary_is_recognised_by_its_lines() {
    let words = [
        "failed", "failure", "passed-run", "passed-so-far", "passed-part", "counts-run",
        "counts-so-far", "counts-part", "example", "another", "tool", "trailer",
    ];
    let table = include_str!("summaries.tsv");
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let (word, text) = line.split_once('\t').expect("a word and a text");
        assert!(words.contains(&word) || word.starts_with('$'), "{line}");
        assert_eq!(text, text.trim_end(), "an editor removes the blanks");
        let is_shared = |name: &str| table.contains(&format!("\n${name}\t"));
        assert!(text.strip_prefix('$').is_none_or(is_shared), "{line}");
    }
    for summary in summary_table::SUMMARIES.iter().filter(|summary| summary.name != "exit-code") {
        let Some(shapes) = summary::tool_matcher(summary) else { panic!("{}", summary.name) };
        let lines = [summary.failing()];
        let failing = shapes.read(&lines, visibility::OutputVisibility::ALL, 0, false);
        assert!(!failing.failed.is_empty(), "{}", summary.failing());
    }
    for (summary, line) in PASSES_OUTSIDE_THE_PAGE {
        assert!(is_pass(summary, line), "{line}");
    }
    summary::script_matcher().expect("shapes compile");
}

#[test]
fn long_outputs_and_lines_are_handled() {
    let million = 300_000;
    for output in [
        "x".repeat(million),
        "\n".repeat(million),
        "ok ".repeat(million),
        "\u{1b}[".repeat(million),
    ] {
        assert_eq!(status("npm test | tail", 0, &output), "unknown");
    }
    const PIECES: [&str; 9] = [
        "cargo test; ", "cargo test && ", "cd a && ", "a | ", "(", "$(", "bash -c ", "sudo ", "a\n",
    ];
    for piece in PIECES {
        CheckCommandLine::from_line(&piece.repeat(20_000));
    }
    // Regression: each of these tests contained all before it, so the stack overflowed.
    for test in ["[ $? -eq 0 ]; ", "if [ $? -eq 0 ]; then ls; fi; "] {
        let line = format!("cargo test; {}", test.repeat(20_000));
        assert_eq!(status(&line, 0, "x"), "unknown");
    }
    // Regression: each printed text was searched for in all lines.
    let line = format!("pytest a 2>&1; {}pytest b 2>&1; ls", "echo m; ".repeat(2_000));
    let output = "x\n".repeat(20_000);
    assert_eq!(ended(&line, "finished", Some(0), &output), "1:unknown 2:unknown");
    assert_eq!(names(&"cargo test;".repeat(100)).len(), check_plan::MAX_CHECKS);
}

fn identity(line: &str) -> String {
    let found = CheckCommandLine::from_line(line).unwrap();
    let ended = RecordedCommandEnd { outcome: "unknown", exit_code: None, output: "" };
    let outcome = found.outcomes(&ended).remove(0);
    let fields = outcome.fields(Some("/w"));
    let text = |name: &str| {
        let value = fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value);
        match value {
            Some(Value::List(items)) => {
                items.iter().filter_map(Value::as_text).collect::<Vec<_>>().join(",")
            }
            Some(value) => value.as_text().unwrap_or_default().to_owned(),
            None => String::new(),
        }
    };
    format!("{} [{}] {} in {}", text("tool"), text("call"), text("target"), text("working_dir"))
}

#[test]
fn targets_are_normalised() {
    for (line, expected) in [
        ("cargo test", "cargo [test]  in /w"),
        ("cargo test -q -- --nocapture", "cargo [test]  in /w"),
        ("cargo test --color always", "cargo [test]  in /w"),
        ("cargo test --color=never a", "cargo [test] a in /w"),
        ("pytest --color yes tests/a.py", "pytest [] tests/a.py in /w"),
        ("jest --color foo", "jest [] foo in /w"),
        ("cargo test --release", "cargo [test] =--release in /w"),
        ("pre-commit run --all-files", "pre-commit [run] +--all-files in /w"),
        ("go test -tags integration ./...", "go [test] +...,=-tags integration in /w"),
        ("cargo build --no-default-features", "cargo [build] =--no-default-features in /w"),
        ("cargo build --target wasm32", "cargo [build] =--target wasm32 in /w"),
        ("cargo +nightly build", "cargo [build] =+nightly in /w"),
        ("rustup run nightly cargo build", "cargo [build] =+nightly in /w"),
        ("RUSTFLAGS='-D warnings' CI=1 cargo check", "cargo [check] =RUSTFLAGS=-D warnings in /w"),
        ("export A=1; cargo check", "cargo [check] =A=1 in /w"),
        ("env A=1 cargo check", "cargo [check] =A=1 in /w"),
        ("bash -c 'A=1 cargo check'", "cargo [check] =A=1 in /w"),
        ("ruff check --select ALL .", "ruff [check] =--select ALL in /w"),
        ("ssh -p 22 prod pytest", "pytest [] =ssh prod in /w"),
        ("ssh prod 'cd a; pytest'", "pytest [] =ssh prod in /w/a"),
        ("docker compose run --rm -e A=b web pytest", "pytest [] =A=b,=container web in /w"),
        ("docker exec -it web sh -c 'pytest'", "pytest [] =container web in /w"),
        ("uv run --python 3.11 pytest", "pytest [] =--python 3.11 in /w"),
        ("timeout 60 sudo pytest --lf", "pytest [] --lf in /w"),
        ("cargo test -p a --test it foo", "cargo [test] --test it,-p a,foo in /w"),
        ("cargo test --workspace", "cargo [test] +--workspace in /w"),
        ("cd sub && cargo test", "cargo [test]  in /w/sub"),
        ("npx --prefix sub tsc", "tsc []  in /w/sub"),
        ("yarn workspace a jest", "jest [] =workspace a in /w"),
        (r"cd C:\a && cargo test", r"cargo [test]  in C:\a"),
        ("cd a:b && cargo test", "cargo [test]  in /w/a:b"),
        // Regression: an option of the command itself was also read as one of the runner.
        ("timeout 60 yarn --cwd sub test", "yarn [test]  in /w/sub"),
        ("cargo test --manifest-path sub/Cargo.toml", "cargo [test]  in /w/sub"),
        ("make -C sub test", "make [test]  in /w/sub"),
        ("(cd sub; true); cargo test", "cargo [test]  in /w"),
        (
            "uv run --directory sub pytest -q ./tests/a.py::b -k 'x y'",
            "pytest [] -k x y,tests/a.py::b in /w/sub",
        ),
        ("python -m pytest .", "pytest []  in /w"),
        ("go test ./...", "go [test] +... in /w"),
        ("go test", "go [test] . in /w"),
        ("go test ./a ./b/...", "go [test] a/.,b in /w"),
        ("npm t", "npm [test]  in /w"),
        ("npm run test", "npm [test]  in /w"),
        ("cargo clippy -- -D warnings", "cargo [clippy] +-D warnings in /w"),
    ] {
        assert_eq!(identity(line), expected, "{line}");
    }
}

/// Without a path, `go test` tests the package of its folder. Options that widen the run or make it
/// another one are no paths: without the `.`, a pass of `go test -race` would settle the failures
/// of every package in the folder.
#[test]
fn an_option_of_go_test_is_no_path() {
    for (line, expected) in [
        ("go test -race", "go [test] +-race,. in /w"),
        ("go test -tags e2e", "go [test] .,=-tags e2e in /w"),
        ("go test -run TestA", "go [test] -run TestA,. in /w"),
        ("A=1 go test", "go [test] .,=A=1 in /w"),
        ("go test -race ./a", "go [test] +-race,a/. in /w"),
        ("go test -race ./...", "go [test] +-race,+... in /w"),
    ] {
        assert_eq!(identity(line), expected, "{line}");
    }
}

/// A switch of Go takes no value: `go test -short ./...` tests every package, not only the one in
/// its folder.
#[test]
fn a_switch_of_go_test_takes_no_path_as_its_value() {
    for (line, expected) in [
        ("go test -short ./...", "go [test] +...,-short in /w"),
        ("go test -json ./a", "go [test] =-json,a/. in /w"),
        ("go test -cover -tags e2e ./...", "go [test] +...,=-cover,=-tags e2e in /w"),
    ] {
        assert_eq!(identity(line), expected, "{line}");
    }
}

/// Regression: an option counted as a second package, so the only line of a run with an option, of
/// the package of its folder, was no pass.
#[test]
fn a_run_of_go_test_with_an_option_passes_by_its_only_line() {
    for (line, output, expected) in [
        ("go test -race | tail -1", "ok  \tb\t1s", "passed"),
        ("go test -race ./b | tail -1", "ok  \tb\t1s", "passed"),
        ("go test -tags e2e | tail -1", "ok  \tb\t1s", "passed"),
        ("go test -race ./... | tail -1", "ok  \tb\t1s", "unknown"),
        ("go test -race ./a ./b | tail -1", "ok  \tb\t1s", "unknown"),
    ] {
        assert_eq!(status(line, 0, output), expected, "{line}");
    }
}

#[test]
fn every_line_of_the_table_of_runners_has_calls_and_a_number() {
    for [calls, _, operands] in wrapper::RUNNERS {
        assert!(calls.split(", ").all(|call| !call.trim().is_empty()), "{calls}");
        assert!(operands.parse::<usize>().is_ok(), "{calls}");
    }
}

#[test]
fn every_line_of_the_words_of_programs_is_read() {
    let lists = ["valued", "directory", "before-subcommand", "non-checking"];
    for line in include_str!("program_words.tsv").lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [list, programs, words] = columns.as_slice() else { panic!("{line}") };
        assert!(lists.contains(list), "{line}");
        for program in programs.split(' ') {
            let known = program_words::words_of(list, program);
            assert!(
                words.split(' ').all(|word| !word.is_empty() && known.contains(&word)),
                "{line}"
            );
        }
    }
}

/// A row of the page's table: what is before and after its example of a line that reports a pass.
type PageRow = (String, &'static summary_table::SummaryPatterns, String);
/// The calls of one kind with the same summary.
type CallGroup = (CheckKind, &'static str, Vec<String>);

/// Returns the rows of the page's table. The examples of lines that report a pass are only on the
/// page.
fn rows() -> Vec<PageRow> {
    let mut groups: Vec<CallGroup> = Vec::new();
    for tool in tools::tools() {
        let calls = tool.programs().flat_map(|program| {
            let first = |call: &'static str| call.split('|').next().unwrap_or_default();
            tool.calls()
                .map(first)
                .map(move |call| format!("`{}`", format!("{program} {call}").trim()))
        });
        let same = groups
            .iter_mut()
            .find(|(check, summary, _)| (*check, *summary) == (tool.check, tool.summary));
        match same {
            Some((_, _, known)) => known.extend(calls),
            None => groups.push((tool.check, tool.summary, calls.collect())),
        }
    }
    let shown = |line: &str| match line.trim() {
        "" => String::new(),
        line if line.contains('`') => format!("`` {line} ``"),
        line => format!("`{}`", line.replace('|', "\\|").replace('\t', " ")),
    };
    let row = |(check, summary, calls): CallGroup| {
        let kind = format!("{check:?}").to_lowercase();
        let before = format!("| {kind} | {} | ", calls.join(", "));
        let summary = summary_table::find(summary).unwrap();
        (before, summary, format!(" | {} |", shown(summary.failing())))
    };
    groups.into_iter().map(row).collect()
}

#[test]
fn the_page_on_checks_has_the_table_of_known_checks() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/checks.md");
    let page = std::fs::read_to_string(path).unwrap();
    let shown = page.lines().filter(|line| {
        ["| test |", "| build |", "| lint |"].iter().any(|start| line.starts_with(start))
    });
    let (shown, rows) = (shown.collect::<Vec<_>>(), rows());
    assert_eq!(shown.len(), rows.len());
    for (row, (before, summary, after)) in shown.into_iter().zip(rows) {
        let passing = row.strip_prefix(&*before).and_then(|rest| rest.strip_suffix(&*after));
        let Some(passing) = passing else { panic!("{row}\nis not\n{before}...{after}") };
        let line = passing.trim_matches(['`', ' ']).replace("\\|", "|");
        let may_pass = summary
            .shapes()
            .any(|(_, says)| matches!(says, LineVerdict::Passed(_) | LineVerdict::Counts(_)));
        let is_right = match &*line {
            "" => !summary.silent && !may_pass,
            "nothing" => summary.silent,
            // The page has a blank in place of a tab.
            line => [line, &line.replace("   ", "  \t")].iter().any(|it| is_pass(summary.name, it)),
        };
        assert!(is_right, "{row}");
    }
    for scripts in tools::SCRIPTS {
        for program in scripts.programs {
            assert!(page.contains(&format!("`{program}`")), "{program}");
        }
    }
}
