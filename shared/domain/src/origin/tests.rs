use super::*;

const YES: Option<Origin> = Some(Origin { term: Term::TrainedAlgorithmicMedia, from: OriginFrom::Service });
const PARTLY: Option<Origin> =
    Some(Origin { term: Term::CompositeWithTrainedAlgorithmicMedia, from: OriginFrom::Service });
const DRAWN: Option<Origin> = Some(Origin { term: Term::AlgorithmicMedia, from: OriginFrom::Service });
const PHOTO: Option<Origin> = Some(Origin { term: Term::DigitalCapture, from: OriginFrom::Service });
const SCAN: Option<Origin> = Some(Origin { term: Term::Print, from: OriginFrom::Service });
const SCREEN: Option<Origin> = Some(Origin { term: Term::ScreenCapture, from: OriginFrom::Service });

fn claimed(term: Term) -> Option<Origin> {
    Some(Origin { term, from: OriginFrom::Metadata })
}

#[test]
fn the_origin_of_every_output() {
    let photo = claimed(Term::DigitalCapture);
    let (yes, partly) = (claimed(Term::TrainedAlgorithmicMedia), claimed(Term::CompositeWithTrainedAlgorithmicMedia));
    let (made, mixed) = (Some(Term::TrainedAlgorithmicMedia), Some(Term::CompositeWithTrainedAlgorithmicMedia));
    let (drawn, synthetic) = (Some(Term::AlgorithmicMedia), Some(Term::CompositeSynthetic));
    let capture = Some(Term::DigitalCapture);
    // Work, the origins of its inputs, and the origin of its output.
    type Row<'a> = (Work, &'a [Option<Origin>], Option<Term>);
    let models: [Row; 20] = [
        (Work::Generate, &[], made),
        (Work::Generate, &[None, PHOTO, yes], made),
        (Work::Edit, &[None], mixed),
        (Work::Edit, &[YES], mixed),
        (Work::Edit, &[PHOTO, None], mixed),
        (Work::Draw, &[], drawn),
        (Work::Draw, &[None], synthetic),
        (Work::Draw, &[PHOTO, DRAWN], synthetic),
        (Work::Draw, &[None, YES], mixed),
        (Work::Draw, &[partly], mixed),
        (Work::Render, &[], None),
        (Work::Render, &[None, DRAWN, PHOTO], None),
        (Work::Render, &[None, YES], mixed),
        (Work::Render, &[PARTLY], mixed),
        (Work::Action(Effect::Annotates), &[None], None),
        (Work::Action(Effect::Annotates), &[photo], None),
        (Work::Action(Effect::Annotates), &[PHOTO], capture),
        (Work::Action(Effect::Annotates), &[YES], mixed),
        (Work::Action(Effect::Annotates), &[PARTLY], mixed),
        (Work::Action(Effect::Annotates), &[DRAWN], drawn),
    ];
    for (work, inputs, expected) in models {
        assert_eq!(of_output(work, inputs), expected, "{work:?} {inputs:?}");
    }
    for (input, expected) in [
        (None, None),
        (photo, None),
        (PHOTO, capture),
        (DRAWN, drawn),
        (claimed(Term::AlgorithmicMedia), None),
        (YES, made),
        (yes, made),
        (PARTLY, mixed),
        (partly, mixed),
    ] {
        assert_eq!(of_output(Work::Action(Effect::Adjusts), &[input]), expected, "{input:?}");
    }
    for (one, other, expected) in [
        (None, None, None),
        (None, PHOTO, None),
        (photo, photo, None),
        (PHOTO, photo, None),
        (PHOTO, PHOTO, Some(Term::CompositeCapture)),
        (PHOTO, SCAN, Some(Term::CompositeCapture)),
        (PHOTO, SCREEN, None),
        (SCREEN, SCREEN, None),
        (DRAWN, None, synthetic),
        (DRAWN, PHOTO, synthetic),
        (DRAWN, DRAWN, synthetic),
        (claimed(Term::AlgorithmicMedia), PHOTO, None),
        (YES, None, mixed),
        (YES, YES, mixed),
        (yes, PHOTO, mixed),
        (PARTLY, DRAWN, mixed),
    ] {
        for inputs in [[one, other], [other, one]] {
            assert_eq!(of_output(Work::Action(Effect::Composes), &inputs), expected, "{inputs:?}");
        }
    }
}

#[test]
fn no_work_takes_back_that_an_image_was_made_with_ai() {
    let actions = [Effect::Adjusts, Effect::Annotates, Effect::Composes].into_iter().map(Work::Action);
    for work in actions.chain([Work::Generate, Work::Edit, Work::Draw, Work::Render]) {
        for ai in
            [YES, PARTLY, claimed(Term::TrainedAlgorithmicMedia), claimed(Term::CompositeWithTrainedAlgorithmicMedia)]
        {
            // The second input of Actions with one input does not exist.
            for inputs in [vec![ai], vec![ai, None], vec![ai, PHOTO]] {
                let output = of_output(work, &inputs).expect("known");
                assert!(output.is_ai(), "{work:?} {inputs:?}");
            }
        }
    }
}

#[test]
fn ai_counts_from_any_source_and_other_terms_from_the_service_alone() {
    for &term in Term::ALL {
        let (by_service, by_file) = match term {
            Term::TrainedAlgorithmicMedia => (AiGenerated::Yes, AiGenerated::Yes),
            Term::CompositeWithTrainedAlgorithmicMedia => (AiGenerated::Partly, AiGenerated::Partly),
            _ => (AiGenerated::No, AiGenerated::Unknown),
        };
        assert_eq!(AiGenerated::from_origin(Some(Origin::service(term))), by_service, "{term}");
        assert_eq!(AiGenerated::from_origin(claimed(term)), by_file, "{term}");
    }
    assert_eq!(AiGenerated::from_origin(None), AiGenerated::Unknown);
}

#[test]
fn each_origin_has_one_answer() {
    let answers: Vec<usize> = AiGenerated::ALL.iter().map(|answer| answer.origins().count()).collect();
    // Twenty terms of the vocabulary, two of them with AI: from the service and from metadata, and no origin.
    assert_eq!(answers, [2, 2, 18, 19]);
}

#[test]
fn a_file_names_a_term_by_its_uri_or_bare() {
    let made = Some(Term::TrainedAlgorithmicMedia);
    for text in [
        "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia",
        "https://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia",
        "HTTP://CV.IPTC.ORG/newscodes/digitalsourcetype/TrainedAlgorithmicMedia",
        " trainedAlgorithmicMedia\n",
    ] {
        assert_eq!(Term::from_file(text), made, "{text}");
    }
    for text in [
        "",
        "trainedAlgorithmic",
        "http://c2pa.org/digitalsourcetype/empty",
        "http://cv.iptc.org/newscodes/mediatopic/trainedAlgorithmicMedia",
        "//cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia",
        "http:trainedAlgorithmicMedia",
    ] {
        assert_eq!(Term::from_file(text), None, "{text}");
    }
    for term in Term::ALL {
        assert_eq!(Term::from_file(&term.uri()), Some(*term));
    }
}

#[test]
fn of_several_terms_in_a_file_one_with_ai_counts() {
    let term = |values: &[&str]| Origin::from_file(values).map(|origin| origin.term);
    assert_eq!(term(&["digitalCapture", "print"]), Some(Term::DigitalCapture));
    assert_eq!(term(&["digitalCapture", "trainedAlgorithmicMedia"]), Some(Term::TrainedAlgorithmicMedia));
    assert_eq!(term(&["nothing", "print"]), Some(Term::Print));
    assert_eq!(term(&[]), None);
}
